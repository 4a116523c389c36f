//! The command line.

use std::path::PathBuf;

use clap::{Parser, Subcommand};
use clap_complete::Shell;
use keywright_client::commands;

use crate::{commands::PluginCommand, config::ListenAddress};

/// Stores and makes the credentials that other systems run on.
#[derive(Debug, Parser)]
#[command(
    name = "keywright",
    version,
    arg_required_else_help = true,
    next_display_order = None,
    after_help = commands::EXIT_STATUSES
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What the program can be told to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    #[command(flatten)]
    Client(Box<commands::Command>),
    /// Copy the database of SQLite to a file, while servers may be running. The keys that encrypt it are backed up apart.
    Backup {
        /// The configuration of the server.
        #[arg(long, value_name = "FILE")]
        config: PathBuf,
        /// Replace the target when it is there.
        #[arg(long)]
        force: bool,
        /// The file to be made.
        target: PathBuf,
    },
    /// Verify everything that is stored: that it can be decrypted and read, and that it is complete. Nothing is changed, and
    /// servers may be running. Ends with 3 when something is wrong.
    Check {
        /// The configuration of the server.
        #[arg(long, value_name = "FILE")]
        config: PathBuf,
        /// Write each finding, and the summary, as a JSON object on a line of its own.
        #[arg(long)]
        json: bool,
    },
    /// Say everything that is wrong with a configuration, without starting anything.
    CheckConfig {
        /// The configuration, TOML. Settings can be overridden by `KEYWRIGHT_SECTION__NAME` in the environment, as for
        /// `serve`.
        #[arg(value_name = "FILE")]
        config: PathBuf,
        /// Also connect to the database. Nothing is changed there.
        #[arg(long)]
        connect: bool,
        /// Don't load the plugins. Loading takes seconds for those that are not in the plugin cache: it compiles them.
        #[arg(long)]
        no_plugins: bool,
    },
    /// Print what makes a shell complete the arguments of this program.
    Completions {
        /// The shell.
        #[arg(value_enum)]
        shell: Shell,
    },
    /// Print the reference of all settings, in Markdown.
    ConfigReference,
    /// Look at the encryption keys of a database, and rotate what they encrypt. Servers may run meanwhile.
    Keys {
        #[command(subcommand)]
        command: KeysCommand,
    },
    /// Write the manual pages of this program and of each of its commands.
    ManPages {
        /// The folder to write them to; made when absent.
        #[arg(value_name = "FOLDER")]
        directory: PathBuf,
    },
    /// Look at plugins, try them out and test them, without a server.
    Plugin {
        #[command(subcommand)]
        command: Box<PluginCommand>,
    },
    /// Run the server.
    Serve {
        /// The configuration, TOML. Settings can be overridden by `KEYWRIGHT_SECTION__NAME` in the environment.
        #[arg(long, value_name = "FILE")]
        config: PathBuf,
    },
    /// Run a server for development, with a configuration, keys, certificates and an identity provider of its own.
    Develop {
        /// Where its configuration and its data are; made when absent, kept otherwise.
        #[arg(long, value_name = "FOLDER")]
        directory: PathBuf,
        /// Where the components of the shipped plugins are.
        #[arg(long, value_name = "FOLDER")]
        plugins: PathBuf,
        /// The address and port to listen on, such as `127.0.0.1:8844` or `localhost:8844`. It is written into a configuration that is made, and ignored otherwise.
        #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8844")]
        listen: ListenAddress,
    },
}

/// What can be done about encryption keys.
#[derive(Debug, Subcommand)]
pub(crate) enum KeysCommand {
    /// Encrypt with the active key what other configured keys encrypt, as servers do in the background. It ends when it is done,
    /// or when another process is at it. The exit status is 3 when versions are left that can't be rotated.
    Rotate {
        /// The configuration, as the servers have it.
        #[arg(long, value_name = "FILE")]
        config: PathBuf,
        /// Wait until nothing is left, whoever does it.
        #[arg(long)]
        wait: bool,
        /// Show no progress.
        #[arg(long)]
        quiet: bool,
    },
    /// Show each key that was ever active, and how many versions it encrypts. Nothing is changed.
    Status {
        /// The configuration, as the servers have it.
        #[arg(long, value_name = "FILE")]
        config: PathBuf,
        /// Write JSON instead of a table.
        #[arg(long)]
        json: bool,
    },
}
