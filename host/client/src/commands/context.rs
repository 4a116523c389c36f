//! What every verb has: settings, a client, and where to write.

use std::path::PathBuf;

use clap::{Args, ValueHint};

use super::Failure;
use crate::{
    Client, Error,
    output::{self, Output},
    session::{Arguments, OutputFormat, Settings, StoredSession},
};

/// The arguments that all verbs have.
#[derive(Debug, Args)]
pub(crate) struct CommonArguments {
    /// The server's address, such as `https://keywright.example:8844`.
    #[arg(long, global = true, value_name = "ADDRESS", help_heading = HEADING, value_hint = ValueHint::Url)]
    server: Option<String>,
    /// A file with authorities, PEM: they alone are trusted. It can be said more than once.
    #[arg(long, global = true, value_name = "FILE", help_heading = HEADING, value_hint = ValueHint::FilePath)]
    ca_cert: Vec<PathBuf>,
    /// The file with a client certificate, PEM.
    #[arg(long, global = true, value_name = "FILE", help_heading = HEADING, value_hint = ValueHint::FilePath)]
    cert: Option<PathBuf>,
    /// The file with the private key of the client certificate, PEM.
    #[arg(long, global = true, value_name = "FILE", help_heading = HEADING, value_hint = ValueHint::FilePath)]
    key: Option<PathBuf>,
    /// How the answer is written: a table on a terminal and JSON elsewhere, unless this says otherwise.
    #[arg(long, short, global = true, value_enum, value_name = "FORM", help_heading = HEADING)]
    output: Option<OutputFormat>,
}

/// What every verb has.
pub(crate) struct Context {
    /// Where it writes.
    pub(crate) output: Output,
    /// What it is configured by.
    pub(crate) settings: Settings,
}

impl Context {
    /// Gathers what the arguments and the rest of the world say.
    pub(crate) fn new(arguments: CommonArguments) -> Result<Self, Failure> {
        let settings = Settings::gather(Arguments {
            server: arguments.server,
            ca_cert: arguments.ca_cert,
            cert: arguments.cert,
            key: arguments.key,
            output: arguments.output,
        })?;
        Ok(Self {
            output: Output::new(settings.output),
            settings,
        })
    }

    /// A client of the configured server, as who the settings say.
    ///
    /// New tokens of a session are kept at once, so that what follows can use them even if this run fails.
    pub(crate) fn client(&self) -> Result<Client, Failure> {
        let settings = &self.settings;
        let mut builder = settings.anonymous_client()?.on_wait(|wait| {
            let seconds = wait.duration.as_secs_f32();
            output::note(&format!(
                "the server is not available now; trying again in {seconds:.1} s"
            ));
        });
        if !settings.has_identity() {
            return Err(Error::NotLoggedIn.into());
        }
        if let Some(grant) = &settings.grant {
            builder = builder.grant(grant.clone());
        }
        if let Some(tokens) = &settings.tokens {
            builder = builder.tokens(tokens.clone());
        }
        if let (Some(session), None) = (&settings.session, &settings.grant) {
            let (session, directory) = (session.clone(), settings.directory.clone());
            builder = builder.on_new_tokens(move |tokens| {
                let renewed = StoredSession {
                    tokens: Some(tokens.clone()),
                    ..session.clone()
                };
                if let Err(cause) = renewed.write(&directory) {
                    output::note(&format!("the renewed login is not kept: {cause}"));
                }
            });
        }
        Ok(builder.build()?)
    }
}

const HEADING: &str = "Options of all verbs";
