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

use std::{borrow::Cow, process::ExitCode};

use clap::{
    Parser,
    error::{ContextKind, ContextValue, ErrorKind},
};
use keywright_client::printable;
use mimalloc::MiMalloc;

/// Takes less processor time per request than the system's allocator, with the same peak memory.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    process::protect_memory();
    let parsed = cli::Arguments::try_parse();
    let arguments = parsed.unwrap_or_else(|refused| printable_error(refused).exit());
    match process::survive_file_size_limit().and_then(|()| arguments.execute()) {
        Ok(status) => status,
        Err(refused) => {
            let message = refused.with_causes();
            commands::print_error(format_args!("keywright: {}", printable(&message)));
            ExitCode::FAILURE
        }
    }
}

/// Removes malformed JSON and parameters, which may contain secrets, from an error, and escapes control characters in its arguments.
fn printable_error(mut refused: clap::Error) -> clap::Error {
    let argument = refused
        .get(ContextKind::InvalidArg)
        .map(ToString::to_string);
    let is_secret = |argument: String| {
        ["<JSON>", "<NAME=VALUE>"]
            .iter()
            .any(|kind| argument.contains(kind))
    };
    if argument.is_some_and(is_secret) && refused.kind() == ErrorKind::ValueValidation {
        let hidden = ContextValue::String("…".to_owned());
        refused.insert(ContextKind::InvalidValue, hidden);
    }
    let escaped = refused.context().filter_map(|(kind, value)| match value {
        ContextValue::String(text) => match printable(text) {
            Cow::Owned(text) => Some((kind, text)),
            Cow::Borrowed(_) => None,
        },
        _ => None,
    });
    for (kind, text) in escaped.collect::<Vec<_>>() {
        refused.insert(kind, ContextValue::String(text));
        // The tip repeats the argument.
        refused.remove(ContextKind::Suggested);
    }
    refused
}
