//! `keywright logout`.

use clap::Args;

use super::{Completion, Context, Example, Failure, Verb, context::reporting_retries, help};
use crate::{
    Client, Error, Grant, output,
    session::{Settings, StoredSession},
};

/// Log out.
///
/// Revokes the login at the identity provider and deletes the stored session. If the provider can't revoke it, the session is
/// still deleted, the tokens stay valid until they expire, and the exit status is 3. To revoke a login whose access token has
/// expired, the client renews the token once.
///
/// Many providers only revoke a client's login with the client's secret, which is not stored. Set `KEYWRIGHT_CLIENT_ID` and
/// `KEYWRIGHT_CLIENT_SECRET` to revoke it; otherwise its access token stays valid until it expires, and the exit status is 0.
#[derive(Debug, Args)]
#[command(after_help = help(EXAMPLES))]
pub struct Logout {}

impl Verb for Logout {
    async fn run(self, context: &Context) -> Result<Completion, Failure> {
        let settings = &context.settings;
        if settings.malformed_session.is_some() {
            StoredSession::delete(&settings.directory)?;
            output::note(
                "deleted a malformed session; its login could not be revoked at the identity provider",
            );
            return Ok(Completion::Partial);
        }
        let Some(session) = &settings.session else {
            output::note("not logged in");
            return Ok(Completion::Full);
        };
        let revoked = revoke(settings, session).await;
        session.end(&settings.directory)?;
        match revoked {
            Ok(()) => {
                output::note(&format!("logged out of {}", session.server));
                Ok(Completion::Full)
            }
            Err(Failure::Client(Error::ClientSecretMissing)) => {
                output::note(
                    "deleted the stored session; its access token stays valid until it expires, because revoking it needs the client's secret",
                );
                Ok(Completion::Full)
            }
            Err(cause) => {
                output::note(&format!(
                    "deleted the stored session, but could not revoke the login: {cause}"
                ));
                Ok(Completion::Partial)
            }
        }
    }
}

async fn revoke(settings: &Settings, session: &StoredSession) -> Result<(), Failure> {
    let Some(tokens) = &session.tokens else {
        return Ok(());
    };
    let builder = reporting_retries(settings.anonymous_client()?);
    let options = &session.login_options;
    let mut builder = builder.login_options(options.clone());
    if let Some(grant @ Grant::ClientCredentials { client_id, .. }) = &settings.grant
        && options.is_of_client
        && options.client_id.as_ref() == Some(client_id)
    {
        builder = builder.grant(grant.clone());
    }
    let client: Client = builder.tokens(tokens.clone()).build()?;
    match client.log_out().await {
        Err(Error::TokenWithoutId) => Err(Failure::Other("its access token has no id".to_owned())),
        revoked => Ok(revoked?),
    }
}

pub(super) const EXAMPLES: &[Example] = &[Example {
    does: "Log out",
    line: "keywright logout",
    before: &["keywright login"],
}];
