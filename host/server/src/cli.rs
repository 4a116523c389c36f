//! The command line.

use std::{path::PathBuf, process::ExitCode};

use clap::{CommandFactory, Parser, Subcommand};
use clap_complete::Shell;
use keywright_client::commands as client;

use crate::{
    commands::{self, KeysCommand, PluginCommand},
    config::{Config, ListenAddress},
    config_check::Extent,
    started::StartupError,
};

/// Store and generate credentials
#[derive(Debug, Parser)]
#[command(
    name = "keywright",
    version,
    arg_required_else_help = true,
    next_display_order = None,
    after_help = client::EXIT_STATUSES
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

impl Arguments {
    /// Runs the command.
    pub(crate) fn execute(self) -> Result<ExitCode, StartupError> {
        match self.command {
            Command::Backup {
                config,
                force,
                target,
            } => commands::backup(&Config::load(&config)?, &target, force),
            Command::Check { config, json } => commands::check(&Config::load(&config)?, json),
            Command::CheckConfig {
                config,
                connect,
                no_plugins,
            } => {
                let extent = Extent {
                    loads_plugins: !no_plugins,
                    connects: connect,
                };
                commands::check_config(&config, extent)
            }
            Command::Client(command) => Ok(command.execute()),
            Command::CompileComponent { seconds_max } => {
                Ok(keywright_runtime::compile_component(seconds_max))
            }
            Command::Completions { shell } => commands::completions(&Self::command(), shell),
            Command::ConfigReference => commands::config_reference(),
            Command::Keys { command } => commands::keys(&command),
            Command::ManPages { directory } => commands::man_pages(Self::command(), &directory),
            Command::Plugin { command } => commands::plugin(*command),
            Command::Serve { config } => commands::serve(&config),
            Command::Develop {
                directory,
                plugins,
                listen,
            } => commands::develop(&directory, &plugins, &listen),
        }
    }
}

/// A command of the program.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    #[command(flatten)]
    Client(Box<client::Command>),
    /// Copy the SQLite database to a file
    ///
    /// Servers may be running. The encryption keys are not included: back them up separately.
    Backup {
        /// Configuration file of the server
        #[arg(long, value_name = "FILE")]
        config: PathBuf,
        /// Overwrite the target if it exists
        #[arg(long)]
        force: bool,
        /// File to create
        target: PathBuf,
    },
    /// Verify all stored data
    ///
    /// Checks that stored values can be decrypted and parsed, and that the data is complete. Nothing is changed, and
    /// servers may be running. Exits with status 3 if there are findings.
    Check {
        /// Configuration file of the server
        #[arg(long, value_name = "FILE")]
        config: PathBuf,
        /// Print each finding, and the summary, as one line of JSON
        #[arg(long)]
        json: bool,
    },
    /// Check a configuration without starting the server
    CheckConfig {
        /// Configuration file, in TOML. Environment variables `KEYWRIGHT_SECTION__NAME` override settings, as for
        /// `serve`.
        #[arg(value_name = "FILE")]
        config: PathBuf,
        /// Also connect to the database, without changing it, and check that the encryption keys decrypt its values
        #[arg(long)]
        connect: bool,
        /// Skip the plugins. Otherwise, plugins that are not in the cache are compiled, which takes seconds.
        #[arg(long)]
        no_plugins: bool,
    },
    /// Compile the component on standard input, as a server does in a process of its own
    #[command(name = keywright_runtime::COMPILE_COMMAND, hide = true)]
    CompileComponent {
        /// Maximum processor time, in seconds
        seconds_max: u64,
    },
    /// Print a shell completion script
    Completions {
        /// Shell
        #[arg(value_enum)]
        shell: Shell,
    },
    /// Print the configuration reference, in Markdown
    ConfigReference,
    /// Show and rotate encryption keys
    ///
    /// Servers may be running.
    Keys {
        #[command(subcommand)]
        command: KeysCommand,
    },
    /// Write the manual pages of all commands
    ManPages {
        /// Folder for the pages; created if missing
        #[arg(value_name = "FOLDER")]
        directory: PathBuf,
    },
    /// Write, inspect and test plugins, without a server
    Plugin {
        #[command(subcommand)]
        command: Box<PluginCommand>,
    },
    /// Run the server
    Serve {
        /// Configuration file, in TOML. Environment variables `KEYWRIGHT_SECTION__NAME` override settings.
        #[arg(long, value_name = "FILE")]
        config: PathBuf,
    },
    /// Run a server for development
    ///
    /// Generates a configuration, keys and certificates, and serves its own identity provider.
    Develop {
        /// Folder for the configuration and data; created if missing, otherwise reused
        #[arg(long, value_name = "FOLDER")]
        directory: PathBuf,
        /// Folder with the components of the shipped plugins
        #[arg(long, value_name = "FOLDER")]
        plugins: PathBuf,
        /// Address and port to listen on, such as `127.0.0.1:8844` or `localhost:8844`. Used only to create the
        /// configuration; ignored if it exists.
        #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8844")]
        listen: ListenAddress,
    },
}
