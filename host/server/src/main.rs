//! `keywright`: the server, and the commands around it.
//!
//! Read [`wiring`] first: it is where the crates of the host meet. Everything else here is the edge of the process:
//! [`commands`], [`config`], [`config_check`], [`tls`], [`listener`], [`management`], [`telemetry`], [`measurements`],
//! [`service_manager`], and [`development`], which makes a configuration for a newcomer.

mod audit;
mod background;
mod cli;
mod commands;
mod components;
mod config;
mod config_check;
mod development;
mod file_descriptors;
mod keys;
mod listener;
mod listening;
mod management;
mod measurements;
mod plugin_cache;
mod plugins;
mod progress;
mod served;
mod service_manager;
mod started;
mod telemetry;
mod tls;
mod tokens;
mod wiring;

use std::process::ExitCode;

use clap::Parser;
use mimalloc::MiMalloc;

/// Takes less processor time per request than the system's allocator, with the same peak memory.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    let arguments = cli::Arguments::parse();
    match commands::execute(arguments) {
        Ok(status) => status,
        Err(refused) => {
            eprintln!("keywright: {}", refused.with_causes());
            ExitCode::FAILURE
        }
    }
}
