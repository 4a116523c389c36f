//! `keywright plugin …`: plugins without a server, for those who write them or are to trust them.
//!
//! A new verb is a file with a struct of arguments, whose help ends with examples that `tests/plugins/author/` types, and
//! a variant of [`PluginCommand`].

mod bench;
mod build;
mod inspect;
mod new;
mod run;
mod test;

use std::{
    io::{self, IsTerminal},
    path::PathBuf,
    process::ExitCode,
};

use chrono::Utc;
use clap::{Args, Subcommand, ValueEnum};
use keywright_runtime::{Candidate, Limits};
use serde_json::{Map, Value};
use tracing::Level;

use crate::started::StartRefused;

/// What can be done with a plugin.
#[derive(Debug, Subcommand)]
pub(crate) enum PluginCommand {
    /// Measure how long it takes to make a value, each in an instance of its own.
    Bench(bench::Bench),
    /// Make a component of a project, in any of the languages of `keywright plugin new`. Each call of another program is
    /// shown.
    Build(build::Build),
    /// Show what a component says of itself, what it needs, and the configuration that takes it. Ends with 3 when no
    /// server would load it.
    Inspect(inspect::Inspect),
    /// Begin a project: a folder with a small generator that works.
    New(new::New),
    /// Make one value, as a server would. Its secret parts are not shown unless this is asked for.
    Run(run::Run),
    /// Look whether a plugin keeps to what a server expects of it, how near it comes to its limits, and whether its
    /// values are random. Ends with 3 when something is found.
    Test(test::Test),
}

/// Does what the arguments say.
pub(crate) fn plugin(command: PluginCommand) -> Result<ExitCode, StartRefused> {
    tracing_subscriber::fmt()
        .with_max_level(Level::ERROR)
        .with_writer(io::stderr)
        .with_ansi(io::stderr().is_terminal())
        .without_time()
        .init();
    match command {
        PluginCommand::Bench(command) => command.execute(),
        PluginCommand::Build(command) => command.execute(),
        PluginCommand::Inspect(command) => command.execute(),
        PluginCommand::New(command) => command.execute(),
        PluginCommand::Run(command) => command.execute(),
        PluginCommand::Test(command) => command.execute(),
    }
}

/// Which component is meant, and as what a server would have it.
#[derive(Debug, Args)]
struct ComponentArguments {
    /// The component.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The plugin's settings, as a configuration would have them: a JSON object. Other users of the machine can see it.
    #[arg(long, value_name = "JSON", default_value = "{}", value_parser = object)]
    settings: Map<String, Value>,
    /// The limits of each call that are to be others than the default ones: a JSON object, such as
    /// `{"deadline_ms": 1000}`.
    #[arg(long, value_name = "JSON", default_value = "{}", value_parser = limits)]
    limits: Limits,
    /// How to write the result.
    #[arg(long, value_enum, value_name = "FORM", default_value = "table")]
    output: OutputForm,
}

impl ComponentArguments {
    fn open(&self) -> Result<Candidate, StartRefused> {
        Candidate::open(self.file.clone(), self.settings.clone(), self.limits)
            .map_err(|refused| StartRefused::while_doing("loading the component", refused))
    }
}

/// What a caller asks for.
#[derive(Debug, Args)]
struct ParameterArguments {
    /// What a caller would ask for: a JSON object.
    #[arg(long, value_name = "JSON", default_value = "{}", value_parser = object)]
    parameters: Map<String, Value>,
}

/// How a result is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum OutputForm {
    /// For programs.
    Json,
    /// For people.
    Table,
}

fn object(text: &str) -> Result<Map<String, Value>, String> {
    match serde_json::from_str(text) {
        Ok(Value::Object(members)) => Ok(members),
        Ok(_) => Err("it is JSON, but no object".to_owned()),
        Err(cause) => Err(format!("it is not JSON: {cause}")),
    }
}

fn limits(text: &str) -> Result<Limits, String> {
    serde_json::from_str(text).map_err(|cause| cause.to_string())
}

/// The time of a call, in seconds since 1970.
fn now_seconds() -> u64 {
    u64::try_from(Utc::now().timestamp()).unwrap_or_default()
}

/// A text of a plugin or of a path, none of whose characters steers a terminal.
fn seen(text: &str) -> String {
    let characters = text.chars().map(|character| {
        if character.is_control() {
            character.escape_default().to_string()
        } else {
            character.to_string()
        }
    });
    characters.collect()
}

/// JSON with a line end.
fn pretty(json: &Value) -> String {
    format!("{json:#}\n")
}

/// What was to be written could not be made JSON, which is a defect.
fn json(of: &impl serde::Serialize) -> Result<Value, StartRefused> {
    serde_json::to_value(of).map_err(|cause| StartRefused::while_doing("writing the result", cause))
}
