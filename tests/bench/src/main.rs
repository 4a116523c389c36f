//! Measurements of the real server, each compared with a reference in the same run.
//!
//! `keywright-bench` runs all of them; `keywright-bench NAME ...` runs the named ones. Numbers among the names are the
//! sizes of stores, as in `keywright-bench scale 1000 100000 1000000`. Files with the extension `wasm` are components,
//! as in `keywright-bench plugins uuid.wasm totp.wasm`. With `--other PROGRAM`, the measurements of requests alternate
//! between the server of this build and that program. Both sides of a comparison alternate, round by round, so that
//! they run under the same conditions; a figure is the median of its rounds unless its row states otherwise. Slow
//! results are not failures: each table states the goals and whether they were met.
//!
//! To add a measurement: write it in `measurements`, and name it in [`MEASUREMENTS`].

mod disk;
mod load;
mod measurements;
mod plugin;
mod process;
mod reference_server;
mod server;
mod statistics;
mod store;
mod table;

use std::{path::PathBuf, process::ExitCode};

use measurements::{Arguments, MEASUREMENTS, requests};
use statistics::Outcome;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match arguments.as_slice() {
        [command, name, folder] if command == reference_server::COMMAND => {
            reference_server::run(name, folder.as_ref())
        }
        names => measure(names),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(cause) => {
            eprintln!("keywright-bench: {cause}");
            ExitCode::FAILURE
        }
    }
}

/// Runs the measurements with these names, or all measurements if no name is given.
fn measure(arguments: &[String]) -> Outcome<()> {
    let mut given = Arguments::default();
    let mut names = Vec::new();
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        let path = PathBuf::from(argument);
        if argument == OTHER {
            given.other = arguments.next().map(PathBuf::from);
        } else if let Ok(size) = argument.parse() {
            given.sizes.push(size);
        } else if path.extension().is_some_and(|ending| ending == "wasm") {
            given.components.push(path);
        } else {
            names.push(argument);
        }
    }
    let is_known = |wanted: &str| MEASUREMENTS.iter().any(|(name, _)| *name == wanted);
    if let Some(unknown) = names.iter().find(|name| !is_known(name)) {
        let known: Vec<&str> = MEASUREMENTS.iter().map(|(name, _)| *name).collect();
        return Err(format!(
            "unknown measurement {unknown}; the measurements are: {}",
            known.join(", ")
        )
        .into());
    }
    if given.other.is_some()
        && let Some(name) = names
            .iter()
            .find(|name| !requests::is_request_measurement(name))
    {
        return Err(format!("{name} does not compare two builds").into());
    }
    if cfg!(debug_assertions) {
        println!("This is a debug build: its figures are not meaningful.");
    }
    for (name, measurement) in MEASUREMENTS {
        let is_selected = if names.is_empty() {
            given.other.is_none() || requests::is_request_measurement(name)
        } else {
            names.iter().any(|wanted| *wanted == name)
        };
        if is_selected {
            println!("\n{name}: {}", measurement(name, &given)?);
        }
    }
    Ok(())
}

/// The option that takes the program of another build of the server.
const OTHER: &str = "--other";
