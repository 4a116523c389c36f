//! `keywright logout`.

use clap::Args;

use super::{Context, Example, Failure, Outcome, Verb, context::telling_of_waits, help};
use crate::{
    Client, Error, output,
    session::{Settings, StoredSession},
};

/// End the login: at the identity provider, and here.
///
/// What is kept here is deleted in any case. Where the identity provider can't be told, the exit status is 3, and its tokens
/// are good until they expire. An access token that has expired is renewed once more to end the login by.
#[derive(Debug, Args)]
#[command(after_help = help(EXAMPLES))]
pub struct Logout {}

impl Verb for Logout {
    async fn run(self, context: &Context) -> Result<Outcome, Failure> {
        let settings = &context.settings;
        if settings.malformed_session.is_some() {
            StoredSession::delete(&settings.directory)?;
            output::note(
                "what was kept here of a login is deleted; it was not readable, so nothing could be ended at the identity \
                 provider",
            );
            return Ok(Outcome::InPart);
        }
        let Some(session) = &settings.session else {
            output::note("there is no login to be ended");
            return Ok(Outcome::Done);
        };
        let told = revoke(settings, session).await;
        session.end(&settings.directory)?;
        match told {
            Ok(()) => {
                output::note(&format!("logged out of {}", session.server));
                Ok(Outcome::Done)
            }
            Err(cause) => {
                output::note(&format!(
                    "the login is forgotten here, and could not be ended at the identity provider: {cause}"
                ));
                Ok(Outcome::InPart)
            }
        }
    }
}

async fn revoke(settings: &Settings, session: &StoredSession) -> Result<(), Failure> {
    let Some(tokens) = &session.tokens else {
        return Ok(());
    };
    let builder = telling_of_waits(settings.anonymous_client()?);
    let builder = builder.login_options(session.login_options.clone());
    let client: Client = builder.tokens(tokens.clone()).build()?;
    match client.log_out().await {
        Err(Error::TokenWithoutId) => Err(Failure::Other(
            "its access token has no id to name it by".to_owned(),
        )),
        told => Ok(told?),
    }
}

/// What help shows.
pub(super) const EXAMPLES: &[Example] = &[Example {
    does: "End the login",
    line: "keywright logout",
    before: &["keywright login"],
}];
