//! The command line.

use std::{net::SocketAddr, path::PathBuf};

use clap::{Parser, Subcommand};

use crate::{
    config::Config, development, listener, management::ManagementListener, started::StartRefused,
    telemetry, wiring,
};

/// Stores and makes the credentials that other systems run on.
#[derive(Debug, Parser)]
#[command(name = "keywright", version, arg_required_else_help = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
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

/// Does what the arguments say.
pub(crate) fn execute(arguments: Arguments) -> Result<(), StartRefused> {
    match arguments.command {
        Command::Serve { config } => serve(&Config::load(&config)?),
        Command::Develop {
            directory,
            plugins,
            listen,
        } => {
            let config_file = development::prepare(&directory, &plugins, listen)?;
            serve(&Config::load(&config_file)?)
        }
    }
}

fn serve(config: &Config) -> Result<(), StartRefused> {
    telemetry::start(&config.log)?;
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .thread_name("keywright-request")
        .build()
        .map_err(|cause| StartRefused::while_doing("starting the request threads", cause))?
        .block_on(async {
            let mut served = wiring::assemble(config).await?;
            let management = match served.management.take() {
                Some(router) => ManagementListener::bind(&config.management, router).await?,
                None => None,
            };
            let serving = listener::serve(served, config);
            match management {
                Some(management) => tokio::select! {
                    outcome = serving => outcome,
                    never = management.serve() => match never {},
                },
                None => serving.await,
            }
        })
}
