//! The verbs of the command line, one file each: its arguments, what it does, and its examples.
//!
//! A new verb needs:
//!
//! 1. a file with a struct of arguments ([`clap::Args`]), an `impl` of [`Verb`], and `EXAMPLES`, which its help shows
//!    (`#[command(after_help = help(EXAMPLES))]`) and a test runs;
//! 2. a variant of [`Command`], a line in `Command::run`, both in the order of the alphabet, and one in [`examples()`];
//! 3. tests in `tests/client/<noun>/<verb>.rs`.
//!
//! A noun with several verbs, as `certificates`, is a folder: its `mod.rs` has the enum of its verbs and passes on to them.

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
pub use failure::Failure;
pub(crate) use failure::Outcome;
use interruption::Interruption;

/// What the program can be told to do as a client.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Regenerate all certificates that an authority signed.
    BulkRegenerate(Invocation<bulk_regenerate::BulkRegenerate>),
    /// Work with certificates: their versions, and the rotation of what signs them.
    Certificates(Invocation<certificates::Certificates>),
    /// Delete a credential, or all below a path.
    Delete(Invocation<delete::Delete>),
    /// Write the credentials below a path, with their values, to a file that `import` reads.
    Export(Invocation<export::Export>),
    /// Find credentials by a path or by a part of their names.
    Find(Invocation<find::Find>),
    /// Have the server make a credential.
    Generate(Box<Invocation<generate::Generate>>),
    /// Read a credential.
    Get(Invocation<get::Get>),
    /// Set every credential that a file lists.
    Import(Invocation<import::Import>),
    /// Fill the references in a document with the credentials that they name.
    Interpolate(Invocation<interpolate::Interpolate>),
    /// Show how many versions are encrypted by which keys.
    KeyUsage(Invocation<key_usage::KeyUsage>),
    /// Log in at the server's identity provider.
    Login(Invocation<login::Login>),
    /// End the login.
    Logout(Invocation<logout::Logout>),
    /// Show whether the server takes writes, or switch its read-only mode.
    Management(Invocation<management::Management>),
    /// Work with permissions: which actor may do what on which path.
    Permissions(Invocation<permissions::Permissions>),
    /// Add a version to a credential, made of what the newest was made of.
    Regenerate(Invocation<regenerate::Regenerate>),
    /// Store a value of your own.
    Set(Invocation<set::Set>),
    /// Show the credential types that the server knows, and their parameters.
    Types(Invocation<types::Types>),
}

/// A verb's own arguments, and those that all verbs have.
#[derive(Debug, Args)]
pub struct Invocation<Own: Args> {
    #[command(flatten)]
    own: Own,
    #[command(flatten)]
    common: context::CommonArguments,
}

/// What a verb does with its arguments.
pub(crate) trait Verb {
    /// Does it. It is dropped in the middle when a signal asks the program to end.
    async fn run(self, context: &Context) -> Result<Outcome, Failure>;
}

impl Command {
    /// Does what the arguments say, tells what went wrong on standard error, and says by which status the program is to end.
    #[must_use]
    pub fn execute(self) -> ExitCode {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        let outcome = match runtime {
            Ok(runtime) => {
                let outcome = runtime.block_on(self.run());
                // A prompt's thread may still wait for a line that nobody needs.
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

    async fn run(self) -> Result<Outcome, Failure> {
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

/// Has a verb do what it does, unless and until a signal asks the program to end. Then it is dropped where it stands: what it
/// must not leave as it is then, such as a hidden prompt or a file by half, is seen to by a `Drop`.
async fn invoke<Own: Args + Verb>(invocation: Invocation<Own>) -> Result<Outcome, Failure> {
    let interruption = Interruption::listen()
        .map_err(|cause| Failure::Other(format!("listening for signals: {cause}")))?;
    let context = Context::new(invocation.common)?;
    select! {
        biased;
        () = interruption.came() => Err(Failure::Interrupted),
        outcome = invocation.own.run(&context) => outcome,
    }
}

/// The examples of all verbs, as their help shows them.
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

/// The statuses that the program ends with, and what it does before it ends with 6, for its help.
pub const EXIT_STATUSES: &str = "\
Exit statuses:
    0  done
    1  could not be done
    2  wrong usage
    3  done in part, left at a question, or something was found
    4  not found, or not known to the caller
    5  not logged in, or not allowed
    6  the server can't be reached, or is not available now
  130  interrupted, by SIGINT, SIGTERM or SIGHUP: what was on its way may have been done

A request is sent again, a few times, while the server answers that it is not available (503) or can't be connected to. A
write that was answered so may have been done all the same, and is then done twice, which adds another version;
KEYWRIGHT_CLIENT_RETRIES=0 sends nothing again.";
