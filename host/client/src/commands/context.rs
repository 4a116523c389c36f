//! What every verb has: settings, a client, and where to write.

use std::{
    path::PathBuf,
    sync::{Mutex, PoisonError},
};

use clap::{Args, ValueHint};

use super::Failure;
use crate::{
    Client, ClientBuilder, Error,
    output::{self, Output},
    session::{Arguments, OutputFormat, Settings, SettingsRefused, StoredSession},
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
    /// The file with an access token, which is read by each command. It goes before `KEYWRIGHT_TOKEN`, a client's id and
    /// secret in the environment, and the login.
    #[arg(long, global = true, value_name = "FILE", help_heading = HEADING, value_hint = ValueHint::FilePath)]
    token_file: Option<PathBuf>,
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
            token_file: arguments.token_file,
            output: arguments.output,
        })?;
        if let Some(file) = StoredSession::open_to_others(&settings.directory) {
            output::note(&format!(
                "{}: its mode lets others read the login that it holds; `chmod 600` it",
                file.display()
            ));
        }
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
        if let Some(file) = &settings.malformed_session {
            return Err(SettingsRefused::SessionMalformed(file.clone()).into());
        }
        let mut builder = telling_of_waits(settings.anonymous_client()?);
        if !settings.has_identity() {
            return Err(Error::NotLoggedIn.into());
        }
        if let Some(grant) = &settings.grant {
            builder = builder.grant(grant.clone());
            builder = builder.login_options(settings.login_options.clone());
        }
        if let Some(tokens) = &settings.tokens {
            builder = builder.tokens(tokens.clone());
        }
        if let (Some(session), None) = (&settings.session, &settings.grant) {
            builder = builder.login_options(session.login_options.clone());
            let session = Mutex::new(session.clone());
            let directory = settings.directory.clone();
            builder = builder.on_new_tokens(move |tokens| {
                let mut session = session.lock().unwrap_or_else(PoisonError::into_inner);
                if let Err(cause) = session.keep(tokens, &directory) {
                    output::note(&format!("the renewed login is not kept: {cause}"));
                }
            });
        }
        Ok(builder.build()?)
    }
}

/// The same client, which tells people when it waits.
pub(super) fn telling_of_waits(builder: ClientBuilder) -> ClientBuilder {
    builder.on_wait(|wait| {
        let seconds = wait.duration.as_secs_f32();
        output::note(&format!(
            "the server, or its identity provider, is not available now; trying again in {seconds:.1} s"
        ));
    })
}

const HEADING: &str = "Options of all verbs";
