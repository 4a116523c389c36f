//! `keywright keys …`: the encryption keys of a database, with or without servers that run on it.

mod rotate;
mod status;

use std::{process::ExitCode, sync::Arc};

use keywright_core::ports::Identifiers;
use keywright_storage::Database;

use crate::{
    cli::KeysCommand,
    commands,
    config::Config,
    started::StartRefused,
    wiring::{RandomIdentifiers, open_database},
};

/// Does what the arguments say.
pub(crate) fn keys(command: &KeysCommand) -> Result<ExitCode, StartRefused> {
    match command {
        KeysCommand::Status { config, json } => {
            let config = Config::load(config)?;
            commands::on_threads(status::status(&config, *json))
        }
        KeysCommand::Rotate {
            config,
            wait,
            quiet,
        } => {
            let config = Config::load(config)?;
            commands::on_threads(rotate::rotate(&config, *wait, *quiet))
        }
    }
}

/// The database of a configuration.
async fn open(config: &Config) -> Result<(Database, Arc<dyn Identifiers>), StartRefused> {
    let identifiers: Arc<dyn Identifiers> = Arc::new(RandomIdentifiers);
    let database = open_database(config, Arc::clone(&identifiers)).await?;
    Ok((database, identifiers))
}
