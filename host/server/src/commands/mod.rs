//! The commands of the program, one file each.

mod backup;
mod check;
mod check_config;
mod completions;
mod config_reference;
mod keys;
mod man_pages;
mod output;
mod plugin;
mod serve;

use std::{process::ExitCode, sync::Arc};

use keywright_storage::Database;

pub(crate) use plugin::PluginCommand;

use crate::{
    cli::{Arguments, Command},
    config::Config,
    config_check::Extent,
    development,
    process::RandomIdentifiers,
    started::StartRefused,
};

/// Runs the command of these arguments.
pub(crate) fn execute(arguments: Arguments) -> Result<ExitCode, StartRefused> {
    match arguments.command {
        Command::Backup {
            config,
            force,
            target,
        } => backup::backup(&Config::load(&config)?, &target, force),
        Command::Check { config, json } => check::check(&Config::load(&config)?, json),
        Command::CheckConfig {
            config,
            connect,
            no_plugins,
        } => {
            let extent = Extent {
                loads_plugins: !no_plugins,
                connects: connect,
            };
            check_config::check_config(&config, extent)
        }
        Command::Client(command) => Ok(command.execute()),
        Command::Completions { shell } => completions::completions(shell),
        Command::ConfigReference => config_reference::config_reference(),
        Command::Keys { command } => keys::keys(&command),
        Command::ManPages { directory } => man_pages::man_pages(&directory),
        Command::Plugin { command } => plugin::plugin(*command),
        Command::Serve { config } => serve::serve(&config),
        Command::Develop {
            directory,
            plugins,
            listen,
        } => {
            let config_file = development::prepare(&directory, &plugins, &listen)?;
            serve::serve(&config_file)
        }
    }
}

/// Opens the configured database for reading, without creating or migrating it.
async fn open_to_read(config: &Config) -> Result<Database, StartRefused> {
    Database::open_to_read(&config.storage.options()?, Arc::new(RandomIdentifiers))
        .await
        .map_err(|cause| StartRefused::while_doing("opening the database", cause))
}
