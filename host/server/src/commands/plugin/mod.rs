//! `keywright plugin …`: plugins without a server, for their authors and for operators.
//!
//! A new verb is a file with a struct of arguments, whose help ends with examples that `tests/plugins/author/` runs,
//! and a variant of [`PluginCommand`].

mod bench;
mod build;
mod inspect;
mod new;
mod push;
mod registry;
mod run;
mod test;
mod tested;

use std::{
    io::{self, IsTerminal, Write},
    path::PathBuf,
    process::ExitCode,
    sync::Arc,
};

use chrono::Utc;
use clap::{Args, Subcommand, ValueEnum};
use keywright_registry::{Cache, PinnedReference, pull};
use keywright_runtime::{ComponentSource, Limits, NoteReader, PluginUnderTest};
use serde_json::{Map, Value};
use tracing::Level;

use self::registry::RegistryArguments;
use crate::{commands::on_threads, config::ComponentLocation, started::StartRefused};

/// A command for plugins.
#[derive(Debug, Subcommand)]
pub(crate) enum PluginCommand {
    /// Measure the duration of calls
    ///
    /// Each call runs in a new instance.
    Bench(bench::Bench),
    /// Build a component from a project
    ///
    /// Supports the languages of `keywright plugin new`. Each command that is run is printed.
    Build(build::Build),
    /// Show a component, its imports and its configuration
    ///
    /// Exits with status 3 if no server would load the component.
    Inspect(inspect::Inspect),
    /// Create a project with a working generator
    New(new::New),
    /// Push a component to a registry
    ///
    /// Also pushes the minisign signature next to the file, if it exists, and prints the reference for a configuration.
    /// Exits with status 3 if no server would load the component.
    Push(push::Push),
    /// Generate one value, as a server would
    ///
    /// Secret parts are hidden unless you use `--reveal`. The plugin's notes are printed to standard error.
    Run(run::Run),
    /// Test a plugin as a server does
    ///
    /// Checks the plugin's conformance, the randomness of its values, and how close it comes to its limits. Exits with
    /// status 3 if there are findings.
    Test(test::Test),
    /// Test the randomness of components for a release.
    #[command(hide = true)]
    Tested(tested::Tested),
}

/// Executes a command.
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
        PluginCommand::Push(command) => command.execute(),
        PluginCommand::Run(command) => command.execute(),
        PluginCommand::Test(command) => command.execute(),
        PluginCommand::Tested(command) => command.execute(),
    }
}

/// The component, its settings and its limits.
#[derive(Debug, Args)]
struct ComponentArguments {
    /// The component: a file, or `oci://HOST[:PORT]/REPOSITORY[:TAG]@sha256:DIGEST` in a registry
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The plugin's settings: a JSON object. Other users of the machine can see it.
    #[arg(long, value_name = "JSON", default_value = "{}", value_parser = object)]
    settings: Map<String, Value>,
    /// Limits of each call that differ from the defaults: a JSON object, such as `{"deadline_ms": 1000}`
    #[arg(long, value_name = "JSON", default_value = "{}", value_parser = limits)]
    limits: Limits,
    /// The output format
    #[arg(long, value_enum, value_name = "FORM", default_value = "table")]
    output: OutputForm,
    #[command(flatten)]
    registry: RegistryArguments,
}

impl ComponentArguments {
    fn open(&self) -> Result<PluginUnderTest, StartRefused> {
        let doing = "loading the component";
        let component = self.file.clone().into_os_string().into_string();
        let location = component.ok().map(ComponentLocation::try_from).transpose();
        let location = location.map_err(|cause| StartRefused::while_doing(doing, cause))?;
        let component = match location {
            Some(ComponentLocation::Registry(reference)) => self.pulled(&reference)?,
            Some(ComponentLocation::File(_)) | None => ComponentSource::File(self.file.clone()),
        };
        PluginUnderTest::open(component, self.settings.clone(), self.limits)
            .map_err(|refused| StartRefused::while_doing(doing, refused))
    }

    /// Pulls a component. Signatures are not checked, and nothing is cached.
    fn pulled(&self, reference: &PinnedReference) -> Result<ComponentSource, StartRefused> {
        let config = self.registry.config(reference.host())?;
        let pulled = on_threads(async {
            let registry = config.registry(reference.host())?;
            pull(&registry, reference, None, &Cache::none(), config.limits())
                .await
                .map_err(|fault| StartRefused::while_doing(format!("pulling {reference}"), fault))
        });
        Ok(ComponentSource::Bytes {
            name: reference.to_string(),
            bytes: pulled?.component.into(),
        })
    }

    /// Opens the component. Its notes are printed to standard error.
    fn open_with_notes(&self) -> Result<PluginUnderTest, StartRefused> {
        let reader: NoteReader = Arc::new(|function, text| {
            // Standard error may be closed.
            let _ = writeln!(io::stderr(), "note ({function}): {text}");
        });
        Ok(self.open()?.with_notes(reader))
    }
}

/// The parameters of a request.
#[derive(Debug, Args)]
struct ParameterArguments {
    /// Parameters of the request: a JSON object
    #[arg(long, value_name = "JSON", default_value = "{}", value_parser = object)]
    parameters: Map<String, Value>,
}

/// The output format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum OutputForm {
    /// JSON
    Json,
    /// A table
    Table,
}

fn object(text: &str) -> Result<Map<String, Value>, String> {
    match keywright_json::read(text) {
        Ok(Value::Object(members)) => Ok(members),
        Ok(_) => Err("must be a JSON object".to_owned()),
        Err(cause) => Err(cause.to_string()),
    }
}

fn limits(text: &str) -> Result<Limits, String> {
    let limits: Value = keywright_json::read(text).map_err(|cause| cause.to_string())?;
    serde_json::from_value(limits).map_err(|cause| cause.to_string())
}

/// Returns the time of a call, in seconds since 1970.
fn now_seconds() -> u64 {
    u64::try_from(Utc::now().timestamp()).unwrap_or_default()
}

/// Escapes control characters, so that a plugin or path cannot control the terminal.
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

/// Formats JSON with a trailing line break.
fn pretty(json: &Value) -> String {
    format!("{json:#}\n")
}

/// Serializes a result. An error is a bug.
fn json(of: &impl serde::Serialize) -> Result<Value, StartRefused> {
    serde_json::to_value(of).map_err(|cause| StartRefused::while_doing("writing the result", cause))
}
