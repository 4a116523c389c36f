//! The command line.

use std::{net::SocketAddr, path::PathBuf};

use clap::{Parser, Subcommand};

/// Stores and makes the credentials that other systems run on.
#[derive(Debug, Parser)]
#[command(name = "keywright", version, arg_required_else_help = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What the program can be told to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
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
        /// The address to listen on. It is written into a configuration that is made, and ignored otherwise.
        #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8844")]
        listen: SocketAddr,
    },
}
