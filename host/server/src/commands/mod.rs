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

use std::{future::Future, process::ExitCode, sync::Arc, thread};

use keywright_storage::Database;

pub(crate) use plugin::PluginCommand;

use crate::{
    cli::{Arguments, Command},
    config::Config,
    config_check::Extent,
    development,
    started::StartRefused,
    wiring::RandomIdentifiers,
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

/// Runs a command on one thread per processor, and at least two, so that one continues if a file blocks the other. When the
/// command is complete, its background tasks are abandoned: compilation of plugins can't be interrupted, and could take
/// minutes.
fn on_threads<T>(work: impl Future<Output = Result<T, StartRefused>>) -> Result<T, StartRefused> {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    if thread::available_parallelism().is_ok_and(|processors| processors.get() == 1) {
        runtime.worker_threads(2);
    }
    let runtime = runtime
        .enable_all()
        .thread_name("keywright-work")
        .build()
        .map_err(|cause| StartRefused::while_doing("starting threads", cause))?;
    let outcome = runtime.block_on(work);
    runtime.shutdown_background();
    outcome
}

/// Opens the configured database for reading, without creating or migrating it.
async fn open_to_read(config: &Config) -> Result<Database, StartRefused> {
    Database::open_to_read(&config.storage.options()?, Arc::new(RandomIdentifiers))
        .await
        .map_err(|cause| StartRefused::while_doing("opening the database", cause))
}
