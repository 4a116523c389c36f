//! `keywright login` and `keywright logout`.

use std::{
    env,
    io::{self, IsTerminal},
    path::{self, PathBuf},
    process::{Command, Stdio},
};

use clap::Args;

use super::run::{CommandError, Completion, Context, Run, help, reporting_retries};
use crate::{
    Client, Error, Grant, LoginOptions, Secret, Tokens, UserAction, input,
    new_file::FileAccessError,
    output,
    session::{Settings, StoredSession},
};

/// Log in at the server's identity provider
///
/// Choose one of `--username`, `--device`, `--browser`, and `--refresh-token` to log in as a user. Use `--client-id` alone to
/// log in as a client with a secret. With a client certificate (`--cert` and `--key`) alone, the certificate identifies you.
///
/// Keywright stores the tokens, the server's address, and the paths of the given files in your settings folder, readable by you
/// alone. It reads passwords and secrets from a prompt, or from standard input if that is not a terminal, and does not store them.
///
/// A client's access token can't be renewed without its secret. If you set `KEYWRIGHT_CLIENT_ID` and
/// `KEYWRIGHT_CLIENT_SECRET`, or provide a token (`--token-file`, `KEYWRIGHT_TOKEN`), you don't need to log in.
#[derive(Debug, Args)]
#[command(after_help = help(EXAMPLES))]
pub struct Login {
    #[command(flatten)]
    user: UserOptions,
    /// Id of the client. For a user login, the public client through which the user logs in. Default: `credhub_cli`.
    #[arg(long, value_name = "ID")]
    client_id: Option<String>,
    /// Scopes to request, separated by spaces. Default: the provider decides.
    #[arg(long, value_name = "SCOPES")]
    scope: Option<String>,
    /// Audience to request, which Auth0 requires.
    #[arg(long, value_name = "AUDIENCE")]
    audience: Option<String>,
    /// Resource to request (RFC 8707).
    #[arg(long, value_name = "URI")]
    resource: Option<String>,
}

/// The options for logging in as a user.
#[derive(Debug, Args)]
#[group(multiple = false)]
struct UserOptions {
    /// Log in as a user with this name and a password.
    #[arg(long, value_name = "NAME")]
    username: Option<String>,
    /// Log in as a user with a browser on any device, where you enter a code.
    #[arg(long)]
    device: bool,
    /// Log in as a user with the browser on this machine. Starts a program in `BROWSER`, otherwise `xdg-open`.
    #[arg(long)]
    browser: bool,
    /// Log in with a refresh token.
    #[arg(long)]
    refresh_token: bool,
}

impl Run for Login {
    async fn run(self, context: &Context) -> Result<Completion, CommandError> {
        let mut settings = context.settings.clone();
        if settings.has_token_file {
            return Err(CommandError::Usage(
                "login does not use --token-file: pass it to the other commands instead".to_owned(),
            ));
        }
        let mut options = self.options(&settings);
        let mut prompts = Prompts {
            settings: &settings,
            provider: None,
        };
        let grant = self.grant(&mut prompts).await?;
        let provider = prompts.provider;
        if let Some(Grant::ClientCredentials { client_id, .. }) = &grant {
            options.client_id = Some(client_id.clone());
            options.is_of_client = true;
        }
        if grant.is_some() && settings.is_certificate_of_session() {
            // The certificate belongs to the previous login.
            settings.client_certificate = None;
        }
        let builder = reporting_retries(settings.anonymous_client()?);
        let mut refused = None;
        let (client, tokens) = if let Some(grant) = grant {
            let mut builder = builder.grant(grant).login_options(options.clone());
            if let Some(provider) = provider {
                builder = builder.identity_provider(provider);
            }
            let client = builder.on_user_action(show_action).build()?;
            let tokens = client.log_in().await?;
            refused = refused_token(&settings, &tokens).await?;
            (client, Some(tokens))
        } else {
            let client = builder.build()?;
            // Reading the version requires authentication, so this checks that the server accepts the certificate.
            client.version().await.map_err(|error| {
                if error.status() == Some(UNAUTHORIZED) {
                    CommandError::CertificateIgnored
                } else {
                    error.into()
                }
            })?;
            (client, None)
        };
        let subject = tokens.as_ref().and_then(Tokens::subject);
        session(&settings, &client, tokens, options)?.write(&settings.directory)?;
        if let Some(cause) = refused {
            return Err(CommandError::TokenRefused(cause));
        }
        let subject = subject.map_or_else(String::new, |name| format!(" as {name}"));
        output::note(&format!("Logged in to {}{subject}.", client.server()));
        Ok(Completion::Full)
    }
}

impl Login {
    /// Returns the parameters of the login. Arguments override the environment and the settings file.
    fn options(&self, settings: &Settings) -> LoginOptions {
        let mut options = settings.login_options.clone();
        for (option, argument) in [
            (&mut options.client_id, &self.client_id),
            (&mut options.scope, &self.scope),
            (&mut options.audience, &self.audience),
            (&mut options.resource, &self.resource),
        ] {
            if argument.is_some() {
                option.clone_from(argument);
            }
        }
        options
    }

    /// Returns the grant, or `None` if only the client certificate identifies the caller.
    async fn grant(self, prompts: &mut Prompts<'_>) -> Result<Option<Grant>, CommandError> {
        let settings = prompts.settings;
        if self.user.device {
            return Ok(Some(Grant::DeviceCode));
        }
        if self.user.browser {
            return Ok(Some(Grant::AuthorizationCode));
        }
        if self.user.refresh_token {
            let token = prompts.secret("Refresh token").await?;
            return Ok(Some(Grant::RefreshToken(token)));
        }
        if let (Some(client_id), None) = (&self.client_id, &self.user.username) {
            return Ok(Some(Grant::ClientCredentials {
                client_id: client_id.clone(),
                client_secret: prompts.secret("Client secret").await?,
            }));
        }
        let username = match self.user.username {
            Some(username) => username,
            None if settings.client_certificate.is_some() => return Ok(None),
            None if settings.grant.is_some() => return Ok(settings.grant.clone()),
            None if io::stdin().is_terminal() => input::line("Username").await?,
            None => {
                return Err(CommandError::Usage(
                    "missing option; use --client-id, --username, --device, --browser, --refresh-token, or --cert and --key"
                        .to_owned(),
                ));
            }
        };
        let password = prompts.secret("Password").await?;
        Ok(Some(Grant::Password { username, password }))
    }
}

/// Prompts for the secrets of a login.
struct Prompts<'a> {
    settings: &'a Settings,
    /// The identity provider that was shown before a prompt.
    provider: Option<String>,
}

impl Prompts<'_> {
    /// Reads a secret. Before a prompt, shows the identity provider that gets the secret, because the server chooses it.
    async fn secret(&mut self, question: &str) -> Result<Secret, CommandError> {
        if io::stdin().is_terminal() {
            let client = reporting_retries(self.settings.anonymous_client()?).build()?;
            let provider = client.identity_provider().await?;
            output::note(&format!("Logging in at the identity provider {provider}."));
            self.provider = Some(provider);
        }
        input::secret_line(question).await
    }
}

/// Returns the server's error if it refuses the access token. Ignores other errors, because the login itself does not depend on
/// the server.
async fn refused_token(
    settings: &Settings,
    tokens: &Tokens,
) -> Result<Option<Error>, CommandError> {
    // Omit the refresh token: using it here could invalidate it, and it must still be valid when the login stores it.
    let tokens = Tokens::new(tokens.access_token.clone(), None);
    let client = settings.anonymous_client()?.tokens(tokens).retries_max(0);
    let response = client.build()?.version().await;
    Ok(response.err().filter(Error::is_not_allowed))
}

/// Returns the session to store. Its paths are absolute, because the next run may be in another folder.
fn session(
    settings: &Settings,
    client: &Client,
    tokens: Option<Tokens>,
    login_options: LoginOptions,
) -> Result<StoredSession, CommandError> {
    let absolute = |file: &PathBuf| {
        path::absolute(file).map_err(|cause| FileAccessError::new(file, "locate", cause))
    };
    let ca_cert = settings.ca_cert.iter().map(absolute);
    let (cert, key) = settings
        .client_certificate
        .as_ref()
        .map(|(cert, key)| (cert, key))
        .unzip();
    let session = StoredSession {
        login_id: Some(fastrand::u64(..)),
        server: client.server().to_owned(),
        ca_cert: ca_cert.collect::<Result<_, _>>()?,
        cert: cert.map(absolute).transpose()?,
        key: key.map(absolute).transpose()?,
        client_id: login_options.client_id,
        resource: login_options.resource,
        is_of_client: login_options.is_of_client,
        ..StoredSession::default()
    };
    Ok(match tokens {
        Some(tokens) => session.with_tokens(tokens),
        None => session,
    })
}

/// The status for a request without an accepted certificate or token.
const UNAUTHORIZED: u16 = 401;

/// Shows a step that the user must take.
fn show_action(action: &UserAction) {
    match action {
        UserAction::EnterCode {
            page,
            page_with_code,
            code,
            expires_in,
        } => {
            output::note(&format!(
                "Open {page} on any device and enter the code {code}"
            ));
            if let Some(page) = page_with_code {
                output::note(&format!("Or open {page}"));
            }
            let minutes = expires_in.as_secs().div_ceil(60);
            output::note(&format!("The code expires in {minutes} min."));
        }
        UserAction::OpenPage { page } => {
            output::note(&format!("Log in on this page:\n{page}"));
            if !open_in_browser(page) {
                output::note("Could not start a browser; open the page yourself.");
            }
            output::note(
                "Waiting for the browser. If the page shows an error, press Ctrl-C and check the client's redirect URI.",
            );
        }
    }
}

/// Opens a page in a browser, without waiting for the browser to exit. Tries the programs in `BROWSER`, separated by colons, and
/// then `xdg-open`. Returns whether a program could be started.
fn open_in_browser(page: &str) -> bool {
    let named = env::var("BROWSER").unwrap_or_default();
    let named = named.split(':').filter(|program| !program.is_empty());
    named.chain(["xdg-open"]).any(|program| {
        let mut command = Command::new(program);
        command.arg(page);
        command.stdin(Stdio::null());
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().is_ok()
    })
}

/// Log out
///
/// Revokes the login at the identity provider and deletes the stored session. If the provider can't revoke it, the session is
/// still deleted, the tokens stay valid until they expire, and the exit status is 3. To revoke a login whose access token has
/// expired, the client renews the token once.
///
/// Many providers only revoke a client's login with the client's secret, which is not stored. Set `KEYWRIGHT_CLIENT_ID` and
/// `KEYWRIGHT_CLIENT_SECRET` to revoke it; otherwise its access token stays valid until it expires, and the exit status is 0.
#[derive(Debug, Args)]
#[command(after_help = help(LOGOUT_EXAMPLES))]
pub struct Logout {}

impl Run for Logout {
    async fn run(self, context: &Context) -> Result<Completion, CommandError> {
        let settings = &context.settings;
        if settings.malformed_session.is_some() {
            StoredSession::delete(&settings.directory)?;
            output::note(
                "Deleted a malformed session. Its login could not be revoked at the identity provider.",
            );
            return Ok(Completion::Partial);
        }
        let Some(session) = &settings.session else {
            output::note("You are not logged in.");
            return Ok(Completion::Full);
        };
        let revoked = revoke(settings, session).await;
        session.delete_unless_replaced(&settings.directory)?;
        match revoked {
            Ok(()) => {
                output::note(&format!("Logged out of {}.", session.server));
                Ok(Completion::Full)
            }
            Err(CommandError::Client(Error::ClientSecretMissing)) => {
                output::note(
                    "Deleted the stored session. Its access token stays valid until it expires, because revoking it requires the client's secret.",
                );
                Ok(Completion::Full)
            }
            Err(cause) => {
                output::note(&format!(
                    "Deleted the stored session, but could not revoke the login: {cause}."
                ));
                Ok(Completion::Partial)
            }
        }
    }
}

async fn revoke(settings: &Settings, session: &StoredSession) -> Result<(), CommandError> {
    let Some(tokens) = session.tokens() else {
        return Ok(());
    };
    let builder = reporting_retries(settings.anonymous_client()?);
    let options = session.login_options();
    let mut builder = builder.login_options(options.clone());
    if let Some(grant @ Grant::ClientCredentials { client_id, .. }) = &settings.grant
        && options.is_of_client
        && options.client_id.as_ref() == Some(client_id)
    {
        builder = builder.grant(grant.clone());
    }
    let client: Client = builder.tokens(tokens).build()?;
    match client.log_out().await {
        Err(Error::TokenWithoutId) => {
            Err(CommandError::Other("its access token has no id".to_owned()))
        }
        revoked => Ok(revoked?),
    }
}

pub(super) const EXAMPLES: &str = "\
# Log in as a client with a secret from a pipe
echo developer-secret | keywright login --server https://keywright.example:8844 --ca-cert ca.pem --client-id developer
# Log in as a user with a password from a file; a terminal prompts for it
$ echo developer-password >password.txt
keywright login --server https://keywright.example:8844 --ca-cert ca.pem --username developer <password.txt
# Log in with a client certificate
keywright login --server https://keywright.example:8844 --ca-cert ca.pem --cert app.pem --key app-key.pem";

pub(super) const LOGOUT_EXAMPLES: &str = "\
# Log out
$ keywright login
keywright logout";
