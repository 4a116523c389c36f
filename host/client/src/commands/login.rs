//! `keywright login`.

use std::{
    io::{self, IsTerminal},
    path::{self, PathBuf},
};

use clap::Args;

use super::{Context, Example, Failure, Outcome, Verb, context::telling_of_waits, help};
use crate::{
    Client, Grant, Tokens, output,
    session::{FileFailure, Settings, StoredSession},
};

/// Log in, so that other verbs need no more than a name.
///
/// What the identity provider gives is kept, with the server's address and the files that are named here, in the folder for
/// settings, for your eyes alone. Secrets come from a prompt on a terminal, and from standard input otherwise; they are not
/// kept. With a client certificate (`--cert` and `--key`) and nothing else, it is the certificate that says who you are.
///
/// The access token of a client can't be renewed without its secret: where that stands in `KEYWRIGHT_CLIENT_ID` and
/// `KEYWRIGHT_CLIENT_SECRET`, no login is needed.
#[derive(Debug, Args)]
#[command(after_help = help(EXAMPLES))]
pub struct Login {
    #[command(flatten)]
    who: Who,
}

/// As who.
#[derive(Debug, Args)]
#[group(multiple = false)]
struct Who {
    /// Log in as a client, by its id and its secret.
    #[arg(long, value_name = "ID")]
    client_id: Option<String>,
    /// Log in as a user, by a name and a password.
    #[arg(long, value_name = "NAME")]
    username: Option<String>,
    /// Log in by a refresh token.
    #[arg(long)]
    refresh_token: bool,
}

impl Verb for Login {
    async fn run(self, context: &Context) -> Result<Outcome, Failure> {
        let mut settings = context.settings.clone();
        let grant = self.who.grant(&settings).await?;
        if grant.is_some() && settings.is_certificate_of_session {
            // It was of the login that ends now.
            settings.client_certificate = None;
        }
        let builder = telling_of_waits(settings.anonymous_client()?);
        let (client, tokens) = if let Some(grant) = grant {
            let client = builder.grant(grant).build()?;
            let tokens = client.log_in().await?;
            (client, Some(tokens))
        } else {
            let client = builder.build()?;
            // Whether the server takes the certificate is known once it says what it does not tell everybody.
            client.version().await?;
            (client, None)
        };
        session(&settings, &client, tokens)?.write(&settings.directory)?;
        output::note(&format!("logged in to {}", client.server()));
        Ok(Outcome::Done)
    }
}

impl Who {
    /// What tokens are asked for by; none where the client certificate is all.
    async fn grant(self, settings: &Settings) -> Result<Option<Grant>, Failure> {
        if let Some(client_id) = self.client_id {
            let client_secret = output::secret_line("Client secret").await?;
            return Ok(Some(Grant::ClientCredentials {
                client_id,
                client_secret,
            }));
        }
        if self.refresh_token {
            let token = output::secret_line("Refresh token").await?;
            return Ok(Some(Grant::RefreshToken(token)));
        }
        let username = match self.username {
            Some(username) => username,
            None if settings.client_certificate.is_some() => return Ok(None),
            None if settings.grant.is_some() => return Ok(settings.grant.clone()),
            None if io::stdin().is_terminal() => output::line("Username").await?,
            None => {
                return Err(Failure::Usage(
                    "as who? --client-id, --username, --refresh-token, or --cert and --key are needed"
                        .to_owned(),
                ));
            }
        };
        let password = output::secret_line("Password").await?;
        Ok(Some(Grant::Password { username, password }))
    }
}

/// What is kept: with whole paths, since the next run may be in another folder.
fn session(
    settings: &Settings,
    client: &Client,
    tokens: Option<Tokens>,
) -> Result<StoredSession, Failure> {
    let absolute = |file: &PathBuf| {
        path::absolute(file).map_err(|cause| FileFailure::new(file, "located", cause))
    };
    let ca_cert = settings.ca_cert.iter().map(absolute);
    let client_certificate = match &settings.client_certificate {
        Some((cert, key)) => Some((absolute(cert)?, absolute(key)?)),
        None => None,
    };
    Ok(StoredSession {
        server: client.server().to_owned(),
        ca_cert: ca_cert.collect::<Result<_, _>>()?,
        client_certificate,
        tokens,
    })
}

/// What help shows.
pub(super) const EXAMPLES: &[Example] = &[
    Example {
        does: "Log in as a client, whose secret another program writes",
        line: "echo developer-secret | keywright login --server https://keywright.example:8844 --ca-cert ca.pem --client-id developer",
        before: &[],
    },
    Example {
        does: "Log in as a user, whose password stands in a file; on a terminal, it is asked for",
        line: "keywright login --server https://keywright.example:8844 --ca-cert ca.pem --username developer <password.txt",
        before: &["echo developer-password >password.txt"],
    },
    Example {
        does: "Log in by a client certificate",
        line: "keywright login --server https://keywright.example:8844 --ca-cert ca.pem --cert app.pem --key app-key.pem",
        before: &[],
    },
];
