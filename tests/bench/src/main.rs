//! Measurements of the real server, each beside what it is compared with, in one run.
//!
//! `keywright-bench` makes them all; `keywright-bench NAME ...` makes those. Numbers among the names are the sizes of the
//! stores that some of them measure, such as `keywright-bench scale 1000 100000 1000000`, and files of the ending `wasm` are the
//! components of `keywright-bench plugins uuid.wasm totp.wasm`. Each file in `measurements` is one measurement.
//! What is compared is measured in turns, round by round, so that both sides meet the same machine; a figure is the
//! median of its rounds unless its row says otherwise. Nothing here fails for being slow: each table says what is aimed
//! at, and whether it was met.
//!
//! To add a measurement: write its file, and name it in [`MEASUREMENTS`].

mod bare_component;
mod bare_server;
mod client;
mod disk;
mod engine;
mod measurements;
mod plugin;
mod process;
mod server;
mod statistics;
mod store;
mod table;

use std::{error::Error, path::PathBuf, process::ExitCode};

use measurements::{
    bulk, existence, find, flush, get, guest_overhead, latency, memory, plugins, rotation, rsa,
    scale, set, start, swap, versions,
};
use table::Table;

/// What a measurement that could not be made says.
type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match arguments.as_slice() {
        [command, body] if command == bare_server::COMMAND => bare_server::run(body.as_ref()),
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

/// A measurement: what it is called, and what makes it.
type Measurement = (&'static str, fn(&Asked) -> Outcome<Table>);

/// What is asked for besides the names of measurements.
struct Asked {
    /// Of which sizes the stores are to be, where a measurement takes any.
    sizes: Vec<usize>,
    /// Which components are to be measured, where a measurement takes any.
    components: Vec<PathBuf>,
}

const MEASUREMENTS: [Measurement; 16] = [
    ("get", |_| get::measure()),
    ("set", |_| set::measure()),
    ("flush", |_| flush::measure()),
    ("scale", |asked| scale::measure(&asked.sizes)),
    ("find", |asked| find::measure(&asked.sizes)),
    ("rotation", |asked| rotation::measure(&asked.sizes)),
    ("guest-overhead", |_| guest_overhead::measure()),
    ("plugins", |asked| plugins::measure(&asked.components)),
    ("rsa", |_| rsa::measure()),
    ("bulk", |_| bulk::measure()),
    ("latency", |_| latency::measure()),
    ("swap", |_| swap::measure()),
    ("existence", |_| existence::measure()),
    ("versions", |_| versions::measure()),
    ("start", |_| start::measure()),
    ("memory", |_| memory::measure()),
];

/// Makes the measurements of these names, or all when there is none.
fn measure(arguments: &[String]) -> Outcome<()> {
    let (mut asked, mut names) = (
        Asked {
            sizes: Vec::new(),
            components: Vec::new(),
        },
        Vec::new(),
    );
    for argument in arguments {
        let path = PathBuf::from(argument);
        if let Ok(size) = argument.parse() {
            asked.sizes.push(size);
        } else if path.extension().is_some_and(|ending| ending == "wasm") {
            asked.components.push(path);
        } else {
            names.push(argument);
        }
    }
    let is_known = |wanted: &str| MEASUREMENTS.iter().any(|(name, _)| *name == wanted);
    if let Some(unknown) = names.iter().find(|name| !is_known(name)) {
        let known: Vec<&str> = MEASUREMENTS.iter().map(|(name, _)| *name).collect();
        return Err(format!(
            "there is no measurement {unknown}; there are: {}",
            known.join(", ")
        )
        .into());
    }
    if cfg!(debug_assertions) {
        println!("This is no release build: its figures say little.");
    }
    for (name, measurement) in MEASUREMENTS {
        if names.is_empty() || names.iter().any(|wanted| *wanted == name) {
            println!("\n{name}: {}", measurement(&asked)?);
        }
    }
    Ok(())
}
