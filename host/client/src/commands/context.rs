//! The settings, the client and the output that all verbs share.

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

// The arguments of all verbs. A doc comment here would replace the help of the verb.
#[derive(Debug, Args)]
pub(crate) struct CommonArguments {
    /// Server address, such as `https://keywright.example:8844`.
    #[arg(long, global = true, value_name = "ADDRESS", help_heading = HEADING, value_hint = ValueHint::Url)]
    server: Option<String>,
    /// PEM file with the CAs to trust instead of the system's; may be repeated.
    #[arg(long, global = true, value_name = "FILE", help_heading = HEADING, value_hint = ValueHint::FilePath)]
    ca_cert: Vec<PathBuf>,
    /// PEM file with the client certificate.
    #[arg(long, global = true, value_name = "FILE", help_heading = HEADING, value_hint = ValueHint::FilePath)]
    cert: Option<PathBuf>,
    /// PEM file with the private key of the client certificate.
    #[arg(long, global = true, value_name = "FILE", help_heading = HEADING, value_hint = ValueHint::FilePath)]
    key: Option<PathBuf>,
    /// File with an access token, read by each command. Overrides the environment and the login.
    #[arg(long, global = true, value_name = "FILE", help_heading = HEADING, value_hint = ValueHint::FilePath)]
    token_file: Option<PathBuf>,
    /// Output format. Default: a table on a terminal, JSON otherwise.
    #[arg(long, short, global = true, value_enum, value_name = "FORMAT", help_heading = HEADING)]
    output: Option<OutputFormat>,
}

/// The settings and the output of a verb.
pub(crate) struct Context {
    pub(crate) output: Output,
    pub(crate) settings: Settings,
}

impl Context {
    /// Combines the arguments with the environment, the session and the settings file.
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
                "{0}: other users can read this login; run `chmod 600 {0}`",
                file.display()
            ));
        }
        Ok(Self {
            output: Output::new(settings.output),
            settings,
        })
    }

    /// Returns a client of the configured server with the configured identity.
    ///
    /// The client stores new tokens of a session at once, so that later runs can use them even if this run fails.
    pub(crate) fn client(&self) -> Result<Client, Failure> {
        let settings = &self.settings;
        if let Some(file) = &settings.malformed_session {
            return Err(SettingsRefused::SessionMalformed(file.clone()).into());
        }
        let mut builder = reporting_retries(settings.anonymous_client()?);
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
        if let Some(source) = &settings.token_source {
            builder = builder.token_source(source.to_string());
        }
        if let (Some(session), None) = (&settings.session, &settings.grant) {
            builder = builder.login_options(session.login_options.clone());
            let session = Mutex::new(session.clone());
            let directory = settings.directory.clone();
            builder = builder.on_new_tokens(move |tokens| {
                let mut session = session.lock().unwrap_or_else(PoisonError::into_inner);
                if let Err(cause) = session.keep(tokens, &directory) {
                    output::note(&format!("can't store the renewed login: {cause}"));
                }
            });
        }
        Ok(builder.build()?)
    }
}

/// Makes the client report each wait before a retry.
pub(super) fn reporting_retries(builder: ClientBuilder) -> ClientBuilder {
    builder.on_wait(|wait| {
        let seconds = wait.duration.as_secs_f32();
        output::note(&format!(
            "the server or its identity provider is unavailable; retrying in {seconds:.1} s"
        ));
    })
}

const HEADING: &str = "Global options";
