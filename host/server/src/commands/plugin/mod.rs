//! `keywright plugin …`: plugins without a server, for those who write them or are to trust them.
//!
//! A new verb is a file with a struct of arguments, whose help ends with examples that `tests/plugins/author/` types, and
//! a variant of [`PluginCommand`].

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
use keywright_runtime::{Candidate, ComponentSource, Limits, NoteReader};
use serde_json::{Map, Value};
use tracing::Level;

use self::registry::RegistryArguments;
use crate::{commands::on_threads, config::ComponentLocation, started::StartRefused};

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
    /// Push a component to a registry, with the signature by minisign that is beside it, and print the reference by which a
    /// configuration has it. Ends with 3 when no server would load it.
    Push(push::Push),
    /// Make one value, as a server would. Its secret parts are not shown unless this is asked for; what the plugin notes is
    /// shown on standard error.
    Run(run::Run),
    /// Look whether a plugin keeps to what a server expects of it, how near it comes to its limits, and whether its
    /// values are random. Ends with 3 when something is found.
    Test(test::Test),
    /// Test the randomness of components for a release.
    #[command(hide = true)]
    Tested(tested::Tested),
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
        PluginCommand::Push(command) => command.execute(),
        PluginCommand::Run(command) => command.execute(),
        PluginCommand::Test(command) => command.execute(),
        PluginCommand::Tested(command) => command.execute(),
    }
}

/// Which component is meant, and as what a server would have it.
#[derive(Debug, Args)]
struct ComponentArguments {
    /// The component: a file, or `oci://HOST[:PORT]/REPOSITORY[:TAG]@sha256:DIGEST` in a registry.
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
    #[command(flatten)]
    registry: RegistryArguments,
}

impl ComponentArguments {
    fn open(&self) -> Result<Candidate, StartRefused> {
        let doing = "loading the component";
        let component = self.file.clone().into_os_string().into_string();
        let location = component.ok().map(ComponentLocation::try_from).transpose();
        let location = location.map_err(|cause| StartRefused::while_doing(doing, cause))?;
        let component = match location {
            Some(ComponentLocation::Registry(reference)) => self.pulled(&reference)?,
            Some(ComponentLocation::File(_)) | None => ComponentSource::File(self.file.clone()),
        };
        Candidate::open(component, self.settings.clone(), self.limits)
            .map_err(|refused| StartRefused::while_doing(doing, refused))
    }

    /// What a reference is to. No signature is looked for, and nothing is kept.
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

    /// The component, whose notes are shown on standard error.
    fn open_with_notes(&self) -> Result<Candidate, StartRefused> {
        let reader: NoteReader = Arc::new(|function, text| {
            // Who closed standard error does not want to read them.
            let _ = writeln!(io::stderr(), "note ({function}): {text}");
        });
        Ok(self.open()?.with_notes(reader))
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
    match keywright_json::read(text) {
        Ok(Value::Object(members)) => Ok(members),
        Ok(_) => Err("it is JSON, but no object".to_owned()),
        Err(cause) => Err(cause.to_string()),
    }
}

fn limits(text: &str) -> Result<Limits, String> {
    let limits: Value = keywright_json::read(text).map_err(|cause| cause.to_string())?;
    serde_json::from_value(limits).map_err(|cause| cause.to_string())
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
