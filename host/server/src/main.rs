//! `keywright`: the server and its commands.
//!
//! Start reading at [`app`], which connects the crates of the host. The other modules are the edge of the process:
//! [`commands`], [`config`], [`config_check`], [`tls`], [`listener`], [`management`], [`telemetry`], [`measurements`],
//! [`process`], and [`development`], which generates the configuration of a development server.

mod app;
mod audit;
mod background;
mod cli;
mod commands;
mod config;
mod config_check;
mod console;
mod development;
mod keys;
mod listener;
mod management;
mod measurements;
mod ownership;
mod plugin_cache;
mod plugins;
mod process;
mod started;
mod telemetry;
mod test_authority;
mod tls;

use std::process::ExitCode;

use clap::{
    Parser,
    error::{ContextKind, ContextValue, ErrorKind},
};
use mimalloc::MiMalloc;

/// Takes less processor time per request than the system's allocator, with the same peak memory.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    process::protect_memory();
    let parsed = cli::Arguments::try_parse();
    let arguments = parsed.unwrap_or_else(|refused| without_json(refused).exit());
    match process::survive_file_size_limit().and_then(|()| arguments.execute()) {
        Ok(status) => status,
        Err(refused) => {
            let message = refused.with_causes();
            commands::print_error(format_args!(
                "keywright: {}",
                keywright_client::printable(&message)
            ));
            ExitCode::FAILURE
        }
    }
}

/// Removes malformed JSON, which may contain secrets, from an error.
fn without_json(mut refused: clap::Error) -> clap::Error {
    let argument = refused.get(ContextKind::InvalidArg);
    let is_json = argument.is_some_and(|argument| argument.to_string().contains("<JSON>"));
    if is_json && refused.kind() == ErrorKind::ValueValidation {
        let hidden = ContextValue::String("…".to_owned());
        refused.insert(ContextKind::InvalidValue, hidden);
    }
    refused
}
