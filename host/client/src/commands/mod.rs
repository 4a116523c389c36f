//! The verbs of the command line, one file each, with the arguments, the implementation and the examples of the verb.
//!
//! To add a verb:
//!
//! 1. Add a file with a struct of arguments ([`clap::Args`]), whose doc comment is the verb's help; an `impl` of [`Verb`]; and
//!    `EXAMPLES`, which the help shows (`#[command(after_help = help(EXAMPLES))]`) and a test runs.
//! 2. Add a variant to [`Command`] and a line to `Command::run`, both in alphabetical order, and a line to [`examples()`].
//! 3. Add tests in `tests/client/<noun>.rs`, or in the folder of its noun.
//!
//! A noun with several verbs, such as `certificates`, is a folder. Its `mod.rs` has the enum of the verbs and dispatches to them.

mod browser;
mod bulk_regenerate;
mod certificates;
mod context;
mod delete;
mod examples;
mod export;
mod failure;
mod find;
mod generate;
mod get;
mod import;
mod input;
mod interpolate;
mod interruption;
mod key_usage;
mod login;
mod logout;
mod management;
mod permissions;
mod regenerate;
mod set;
mod shown;
mod types;

use std::process::ExitCode;

use clap::{Args, Subcommand};
use tokio::select;

use crate::output;
pub(crate) use context::Context;
pub(crate) use examples::help;
pub use examples::{Example, VerbExamples};
pub(crate) use failure::Completion;
pub use failure::Failure;
use interruption::Interruption;

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
    KeyUsage(Invocation<key_usage::KeyUsage>),
    Login(Invocation<login::Login>),
    Logout(Invocation<logout::Logout>),
    Management(Invocation<management::Management>),
    Permissions(Invocation<permissions::Permissions>),
    Regenerate(Invocation<regenerate::Regenerate>),
    Set(Invocation<set::Set>),
    Types(Invocation<types::Types>),
}

// The arguments of a verb, and those of all verbs.
#[derive(Debug, Args)]
#[expect(
    missing_docs,
    reason = "a doc comment would replace the help of the verb"
)]
pub struct Invocation<Own: Args> {
    #[command(flatten)]
    own: Own,
    #[command(flatten)]
    common: context::CommonArguments,
}

/// A verb with its arguments.
pub(crate) trait Verb {
    /// Runs the verb. A shutdown signal drops the future before it completes.
    async fn run(self, context: &Context) -> Result<Completion, Failure>;
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
            Err(cause) => Err(Failure::Other(format!("starting: {cause}"))),
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

/// Runs a verb until it completes or a shutdown signal arrives. A signal drops the verb's future; `Drop` implementations restore
/// a hidden prompt and remove incomplete files.
async fn invoke<Own: Args + Verb>(invocation: Invocation<Own>) -> Result<Completion, Failure> {
    let interruption = Interruption::listen()
        .map_err(|cause| Failure::Other(format!("listening for signals: {cause}")))?;
    let context = Context::new(invocation.common)?;
    select! {
        biased;
        () = interruption.came() => Err(Failure::Interrupted),
        outcome = invocation.own.run(&context) => outcome,
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
        VerbExamples::new("key-usage", key_usage::EXAMPLES),
        VerbExamples::new("login", login::EXAMPLES),
        VerbExamples::new("logout", logout::EXAMPLES),
        VerbExamples::new("management", management::EXAMPLES),
        VerbExamples::new("regenerate", regenerate::EXAMPLES),
        VerbExamples::new("set", set::EXAMPLES),
        VerbExamples::new("types", types::EXAMPLES),
    ];
    examples.extend(certificates::EXAMPLES);
    examples.extend(permissions::EXAMPLES);
    examples
}

/// The sections of the help on exit statuses and retries.
pub const EXIT_STATUSES: &str = "\
Exit statuses:
    0  success
    1  failure
    2  usage error
    3  partial success, declined confirmation, or findings
    4  not found, or not visible to you
    5  not logged in, or not allowed
    6  server unreachable or unavailable
  130  interrupted by SIGINT, SIGTERM or SIGHUP; requests in progress may have taken effect

Retries:
  The client retries a request a few times while it can't connect to the server or the server responds with 503. A write may
  have taken effect despite a 503; the retry then adds another version. KEYWRIGHT_CLIENT_RETRIES=0 disables retries.";
