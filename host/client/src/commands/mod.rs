//! The commands of the client. Each file has one command, a pair of commands, or a group such as `certificates`, with their
//! arguments, their implementation and their examples. `run.rs` contains the parts common to all commands.
//!
//! To add a command:
//!
//! 1. If [`Client`](crate::Client) lacks the request, add it to the file in `api/` for the resource, such as `credentials.rs`.
//!    Add its types to `api/mod.rs`.
//! 2. Add a file with:
//!
//!    - a struct of arguments ([`clap::Args`]), whose doc comment is the command's help,
//!    - an `impl` of [`Run`](run::Run), which shows the response with [`Context::show`](run::Context::show), and
//!    - `EXAMPLES`, which the help shows (`#[command(after_help = help(EXAMPLES))]`) and a test runs.
//!
//! 3. Here, add a `mod` line, a variant to [`Command`] and a line to `Command::run`, all in alphabetical order, and a line to
//!    [`examples()`].
//! 4. Add tests in `tests/client/`, in the file or folder for the resource.
//!
//! A command of a group, such as `certificates list`, needs no file of its own. Add to the file of the group:
//!
//! - a variant of the group's enum, whose doc comment is the command's help, with its case in `run`, and
//! - the examples.

mod bulk_regenerate;
mod certificates;
mod delete;
mod export;
mod find;
mod generate;
mod get;
mod import;
mod interpolate;
mod login;
mod operations;
mod permissions;
mod run;
mod set;
mod types;

use std::process::ExitCode;

use clap::Subcommand;

pub use crate::command_error::EXIT_STATUSES;
use crate::output;
pub use run::Invocation;
use run::{CommandError, Completion, invoke};

/// The commands of the client.
#[derive(Debug, Subcommand)]
#[expect(
    missing_docs,
    reason = "a doc comment on a variant would replace the help of the command"
)]
pub enum Command {
    BulkRegenerate(Invocation<bulk_regenerate::BulkRegenerate>),
    Certificates(Invocation<certificates::Certificates>),
    Delete(Invocation<delete::Delete>),
    Export(Invocation<export::Export>),
    Find(Invocation<find::Find>),
    Generate(Box<Invocation<generate::Generate>>),
    Get(Invocation<get::Get>),
    Import(Invocation<import::Import>),
    Interpolate(Invocation<interpolate::Interpolate>),
    KeyUsage(Invocation<operations::KeyUsage>),
    Login(Invocation<login::Login>),
    Logout(Invocation<login::Logout>),
    Management(Invocation<operations::Management>),
    Permissions(Invocation<permissions::Permissions>),
    Regenerate(Invocation<generate::Regenerate>),
    Set(Invocation<set::Set>),
    Types(Invocation<types::Types>),
}

impl Command {
    /// Runs the command, prints a failure to standard error, and returns the exit status.
    #[must_use]
    pub fn execute(self) -> ExitCode {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        let outcome = match runtime {
            Ok(runtime) => {
                let outcome = runtime.block_on(self.run());
                // The thread of a prompt may still be reading a line.
                runtime.shutdown_background();
                outcome
            }
            Err(cause) => Err(CommandError::Other(format!(
                "starting the runtime: {cause}"
            ))),
        };
        match outcome {
            Ok(outcome) => outcome.status(),
            Err(failure) => {
                output::error(&failure.to_string());
                if let Some(advice) = failure.advice() {
                    output::note(advice);
                }
                failure.status()
            }
        }
    }

    async fn run(self) -> Result<Completion, CommandError> {
        match self {
            Self::BulkRegenerate(command) => invoke(command).await,
            Self::Certificates(command) => invoke(command).await,
            Self::Delete(command) => invoke(command).await,
            Self::Export(command) => invoke(command).await,
            Self::Find(command) => invoke(command).await,
            Self::Generate(command) => invoke(*command).await,
            Self::Get(command) => invoke(command).await,
            Self::Import(command) => invoke(command).await,
            Self::Interpolate(command) => invoke(command).await,
            Self::KeyUsage(command) => invoke(command).await,
            Self::Login(command) => invoke(command).await,
            Self::Logout(command) => invoke(command).await,
            Self::Management(command) => invoke(command).await,
            Self::Permissions(command) => invoke(command).await,
            Self::Regenerate(command) => invoke(command).await,
            Self::Set(command) => invoke(command).await,
            Self::Types(command) => invoke(command).await,
        }
    }
}

/// Returns the names of all commands, as typed, and their examples in the format of `run::help`.
#[must_use]
pub fn examples() -> Vec<(&'static str, &'static str)> {
    let mut examples = vec![
        ("bulk-regenerate", bulk_regenerate::EXAMPLES),
        ("delete", delete::EXAMPLES),
        ("export", export::EXAMPLES),
        ("find", find::EXAMPLES),
        ("generate", generate::EXAMPLES),
        ("get", get::EXAMPLES),
        ("import", import::EXAMPLES),
        ("interpolate", interpolate::EXAMPLES),
        ("key-usage", operations::KEY_USAGE_EXAMPLES),
        ("login", login::EXAMPLES),
        ("logout", login::LOGOUT_EXAMPLES),
        ("management", operations::MANAGEMENT_EXAMPLES),
        ("regenerate", generate::REGENERATE_EXAMPLES),
        ("set", set::EXAMPLES),
        ("types", types::EXAMPLES),
    ];
    examples.extend(certificates::EXAMPLES);
    examples.extend(permissions::EXAMPLES);
    examples
}
