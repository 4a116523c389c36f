//! `keywright keys …`: the encryption keys of a database, whether or not servers use it.

mod rotate;
mod status;

use std::process::ExitCode;

use crate::{
    cli::KeysCommand, config::Config, process::on_threads, started::StartRefused, telemetry,
};

/// Executes a command.
pub(crate) fn keys(command: &KeysCommand) -> Result<ExitCode, StartRefused> {
    match command {
        KeysCommand::Status { config, json } => {
            let config = Config::load(config)?;
            telemetry::start(&config.log)?;
            on_threads(status::status(&config, *json))
        }
        KeysCommand::Rotate {
            config,
            wait,
            quiet,
        } => {
            let config = Config::load(config)?;
            if *quiet {
                telemetry::start_quietly(&config.log)?;
            } else {
                telemetry::start(&config.log)?;
            }
            on_threads(rotate::rotate(&config, *wait, *quiet))
        }
    }
}
