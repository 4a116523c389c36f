//! `keywright plugin …`: plugins without a server, for their authors and for operators.
//!
//! A new command is a struct of arguments, whose help ends with examples that `tests/plugins/author/` runs, and a variant
//! of [`PluginCommand`].

mod arguments;
mod inspect;
mod project;
mod run;

use std::{
    io::{self, IsTerminal},
    process::ExitCode,
};

use clap::Subcommand;

use super::output::{self, AboveProgress};
use crate::started::StartupError;

/// A command for plugins.
#[derive(Debug, Subcommand)]
pub(crate) enum PluginCommand {
    /// Measure the duration of calls
    ///
    /// Each call runs in a new instance.
    Bench(run::Bench),
    /// Build a component from a project
    ///
    /// Supports the languages of `keywright plugin new`. Prints each command that it runs.
    Build(project::Build),
    /// Show a component, its imports and its configuration
    ///
    /// Exits with status 3 if no server would load the component.
    Inspect(inspect::Inspect),
    /// Create a project with a working plugin
    New(project::New),
    /// Push a component to a registry
    ///
    /// Also pushes the minisign signature next to the file, if it exists, and prints the reference for a configuration.
    /// Exits with status 3 if no server would load the component.
    Push(inspect::Push),
    /// Call a plugin once, as a server would
    ///
    /// Generates a value, sets a value, recovers the parameters of a value, or finds the references in a document. Secret
    /// parts are redacted unless you use `--reveal`. The plugin's notes are printed to standard error. If the parameters
    /// name a CA, a test CA signs the value.
    Run(Box<run::Run>),
    /// Test a plugin as a server does
    ///
    /// Checks the plugin's conformance, the randomness of its values, and how close it comes to its limits. With
    /// `--against`, also compares it with an older release. Exits with status 3 if there are findings.
    Test(run::Test),
    /// Test the randomness of components for a release.
    #[command(hide = true)]
    Tested(run::Tested),
}

/// Executes a command.
pub(crate) fn plugin(command: PluginCommand) -> Result<ExitCode, StartupError> {
    let progress = output::spinner();
    let above = progress.clone();
    tracing_subscriber::fmt()
        // The commands report faults of plugins.
        .with_env_filter("warn,keywright_runtime::call=off")
        .with_writer(move || AboveProgress(above.clone()))
        .with_ansi(io::stderr().is_terminal())
        .without_time()
        .init();
    let outcome = match command {
        PluginCommand::Bench(command) => command.execute(&progress),
        PluginCommand::Build(command) => command.execute(),
        PluginCommand::Inspect(command) => command.execute(&progress),
        PluginCommand::New(command) => command.execute(),
        PluginCommand::Push(command) => command.execute(),
        PluginCommand::Run(command) => command.execute(&progress),
        PluginCommand::Test(command) => command.execute(&progress),
        PluginCommand::Tested(command) => command.execute(),
    };
    progress.finish_and_clear();
    outcome
}
