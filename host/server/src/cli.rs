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
    /// Say everything that is wrong with a configuration, without starting anything.
    CheckConfig {
        /// The configuration, TOML. Settings can be overridden by `KEYWRIGHT_SECTION__NAME` in the environment, as for
        /// `serve`.
        #[arg(value_name = "FILE")]
        config: PathBuf,
        /// Also connect to the database. Nothing is changed there.
        #[arg(long)]
        connect: bool,
        /// Don't load the plugins, which takes seconds: they are compiled for it.
        #[arg(long)]
        no_plugins: bool,
    },
    /// Print the reference of all settings, in Markdown.
    ConfigReference,
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
