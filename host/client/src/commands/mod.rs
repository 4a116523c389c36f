//! The verbs of the command line. Each file has one verb, a pair of verbs, or the verbs of one noun, with their arguments, their
//! implementation and their examples. `verb.rs` contains the parts common to all verbs.
//!
//! To add a verb:
//!
//! 1. If [`Client`](crate::Client) lacks the request, add it to the file of its noun in `api/`, and its types to `api/mod.rs`.
//! 2. Add a file with a struct of arguments ([`clap::Args`]), whose doc comment is the verb's help; an `impl` of
//!    [`Verb`](verb::Verb); and `EXAMPLES`, which the help shows (`#[command(after_help = help(EXAMPLES))]`) and a test runs. Implement
//!    [`Render`](crate::output::Render) for the response if it has no output yet.
//! 3. Here, add a `mod` line, a variant to [`Command`] and a line to `Command::run`, all in alphabetical order, and a line to
//!    [`examples()`].
//! 4. Add tests in `tests/client/<noun>.rs`, or in the folder of its noun.
//!
//! Add a verb of a noun, such as `certificates list`, to the file of the noun instead: its struct and its `impl`, a variant of the
//! noun's enum with a line in its `run`, and its examples.

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
mod set;
mod types;
mod verb;

use std::process::ExitCode;

use clap::Subcommand;

pub use crate::failure::EXIT_STATUSES;
use crate::output;
use verb::{Completion, Failure, invoke};
pub use verb::{Example, Invocation, VerbExamples};

/// The verbs of the client.
#[derive(Debug, Subcommand)]
#[expect(
    missing_docs,
    reason = "a doc comment on a variant would replace the help of the verb"
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
    /// Runs the verb, prints a failure to standard error, and returns the exit status.
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
            Err(cause) => Err(Failure::Other(format!("starting the runtime: {cause}"))),
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

    async fn run(self) -> Result<Completion, Failure> {
        match self {
            Self::BulkRegenerate(verb) => invoke(verb).await,
            Self::Certificates(verb) => invoke(verb).await,
            Self::Delete(verb) => invoke(verb).await,
            Self::Export(verb) => invoke(verb).await,
            Self::Find(verb) => invoke(verb).await,
            Self::Generate(verb) => invoke(*verb).await,
            Self::Get(verb) => invoke(verb).await,
            Self::Import(verb) => invoke(verb).await,
            Self::Interpolate(verb) => invoke(verb).await,
            Self::KeyUsage(verb) => invoke(verb).await,
            Self::Login(verb) => invoke(verb).await,
            Self::Logout(verb) => invoke(verb).await,
            Self::Management(verb) => invoke(verb).await,
            Self::Permissions(verb) => invoke(verb).await,
            Self::Regenerate(verb) => invoke(verb).await,
            Self::Set(verb) => invoke(verb).await,
            Self::Types(verb) => invoke(verb).await,
        }
    }
}

/// Returns the examples in the help of all verbs.
#[must_use]
pub fn examples() -> Vec<VerbExamples> {
    let mut examples = vec![
        VerbExamples::new("bulk-regenerate", bulk_regenerate::EXAMPLES),
        VerbExamples::new("delete", delete::EXAMPLES),
        VerbExamples::new("export", export::EXAMPLES),
        VerbExamples::new("find", find::EXAMPLES),
        VerbExamples::new("generate", generate::EXAMPLES),
        VerbExamples::new("get", get::EXAMPLES),
        VerbExamples::new("import", import::EXAMPLES),
        VerbExamples::new("interpolate", interpolate::EXAMPLES),
        VerbExamples::new("key-usage", operations::KEY_USAGE_EXAMPLES),
        VerbExamples::new("login", login::EXAMPLES),
        VerbExamples::new("logout", login::LOGOUT_EXAMPLES),
        VerbExamples::new("management", operations::MANAGEMENT_EXAMPLES),
        VerbExamples::new("regenerate", generate::REGENERATE_EXAMPLES),
        VerbExamples::new("set", set::EXAMPLES),
        VerbExamples::new("types", types::EXAMPLES),
    ];
    examples.extend(certificates::EXAMPLES);
    examples.extend(permissions::EXAMPLES);
    examples
}
