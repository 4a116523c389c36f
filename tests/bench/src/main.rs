//! Measurements of the real server, each compared with a reference in the same run.
//!
//! `keywright-bench` runs all of them; `keywright-bench NAME ...` runs the named ones. Numbers among the names are the
//! sizes of stores, as in `keywright-bench scale 1000 100000 1000000`. Files with the extension `wasm` are components, as
//! in `keywright-bench plugins uuid.wasm totp.wasm`. Each file in `measurements` is one measurement. With `--other
//! PROGRAM`, the measurements of requests alternate between the server of this build and that program. Both sides of a
//! comparison alternate, round by round, so that they run under the same conditions; a figure is the median of its rounds
//! unless its row states otherwise. Slow results are not failures: each table states the goals and whether they were met.
//!
//! To add a measurement: write its file, and name it in [`MEASUREMENTS`].

mod bare_component;
mod client;
mod disk;
mod engine;
mod floor;
mod load;
mod measurements;
mod plugin;
mod process;
mod reference_server;
mod server;
mod statistics;
mod store;
mod table;

use std::{error::Error, path::PathBuf, process::ExitCode};

use measurements::{
    bulk, existence, find, guest_overhead, memory, plugins, requests, rotation, rsa, scale, start,
    swap, versions,
};
use table::Table;

/// The result of a measurement, or the reason for its failure.
type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

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

/// A measurement's name and function.
type Measurement = (&'static str, fn(&Asked) -> Outcome<Table>);

/// The arguments other than names of measurements.
struct Asked {
    /// The sizes of stores, for measurements with such an argument.
    sizes: Vec<usize>,
    /// The components, for measurements with such an argument.
    components: Vec<PathBuf>,
    /// The program of another build of the server that requests are measured with, alternating with this build.
    other: Option<PathBuf>,
}

const MEASUREMENTS: [Measurement; 18] = [
    ("get", |asked| requests::measure("get", asked)),
    ("interpolate", |asked| {
        requests::measure("interpolate", asked)
    }),
    ("set", |asked| requests::measure("set", asked)),
    ("flush", |asked| requests::measure("flush", asked)),
    ("generate", |asked| requests::measure("generate", asked)),
    ("latency", |asked| requests::measure("latency", asked)),
    ("scale", |asked| scale::measure(&asked.sizes)),
    ("find", |asked| find::measure(&asked.sizes)),
    ("rotation", |asked| rotation::measure(&asked.sizes)),
    ("guest-overhead", |_| guest_overhead::measure()),
    ("plugins", |asked| plugins::measure(&asked.components)),
    ("rsa", |_| rsa::measure()),
    ("bulk", |_| bulk::measure()),
    ("swap", |_| swap::measure()),
    ("existence", |_| existence::measure()),
    ("versions", |_| versions::measure()),
    ("start", |_| start::measure()),
    ("memory", |_| memory::measure()),
];

/// Runs the measurements with these names, or all if there are none.
fn measure(arguments: &[String]) -> Outcome<()> {
    let mut asked = Asked {
        sizes: Vec::new(),
        components: Vec::new(),
        other: None,
    };
    let mut names = Vec::new();
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        let path = PathBuf::from(argument);
        if argument == OTHER {
            asked.other = arguments.next().map(PathBuf::from);
        } else if let Ok(size) = argument.parse() {
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
    if asked.other.is_some()
        && let Some(name) = names.iter().find(|name| !requests::is_one(name))
    {
        return Err(format!("{name} does not compare two builds").into());
    }
    if cfg!(debug_assertions) {
        println!("This is no release build: its figures say little.");
    }
    for (name, measurement) in MEASUREMENTS {
        let is_asked_for = if names.is_empty() {
            asked.other.is_none() || requests::is_one(name)
        } else {
            names.iter().any(|wanted| *wanted == name)
        };
        if is_asked_for {
            println!("\n{name}: {}", measurement(&asked)?);
        }
    }
    Ok(())
}

/// The option that takes the program of another build of the server.
const OTHER: &str = "--other";
