//! `keywright logout`.

use clap::Args;

use super::{Completion, Context, Example, Failure, Verb, context::reporting_retries, help};
use crate::{
    Client, Error, output,
    session::{Settings, StoredSession},
};

/// Log out.
///
/// Revokes the login at the identity provider and deletes the stored session. If the provider can't revoke it, the session is
/// still deleted, the tokens stay valid until they expire, and the exit status is 3. To revoke a login whose access token has
/// expired, the client renews the token once.
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
    let builder = builder.login_options(session.login_options.clone());
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
