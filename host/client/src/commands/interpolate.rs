//! `keywright interpolate`.

use std::{
    io::{self, IsTerminal},
    path::{Path, PathBuf},
};

use clap::{Args, ValueHint};

use super::{Context, Example, Failure, Outcome, Verb, help, input::text_of};
use crate::{
    new_file::{Readers, write_whole},
    output,
};

/// Fill the references in a document of service bindings with the credentials that they name.
///
/// The document is a JSON object of arrays of bindings. Where the `credentials` of one hold a `store-ref`, a `credhub-ref` or
/// a `credhub_ref` (the server's configuration may name others), they become the value of that credential, which must be of
/// type json. Everything else stays as it is.
#[derive(Debug, Args)]
#[command(after_help = help(EXAMPLES))]
pub struct Interpolate {
    /// The file with the document. Without one, or with `-`, it is read from standard input.
    #[arg(value_name = "DOCUMENT", value_hint = ValueHint::FilePath)]
    document: Option<PathBuf>,
    /// Write to a file of mode 0600 instead of standard output.
    #[arg(long, short, value_name = "FILE", value_hint = ValueHint::FilePath)]
    file: Option<PathBuf>,
}

impl Verb for Interpolate {
    async fn run(self, context: &Context) -> Result<Outcome, Failure> {
        let path = self.document.as_deref().unwrap_or(STANDARD_INPUT.as_ref());
        let is_typed = path == Path::new(STANDARD_INPUT) && io::stdin().is_terminal();
        if is_typed {
            output::note("The document is read from the terminal; end it with Ctrl-D.");
        }
        let document = text_of(path)?;
        keywright_json::check(&document)
            .map_err(|cause| Failure::Other(format!("the document can't be used: {cause}")))?;
        let filled = context.client()?.interpolate(&document).await?;
        match &self.file {
            Some(file) => write_whole(file, filled.expose().as_bytes(), Readers::Owner)?,
            None => context.output.show_document(
                keywright_json::raw(filled.expose()).map_err(serde_json::Error::from)?,
            )?,
        }
        Ok(Outcome::Done)
    }
}

/// What standard input is called in the place of a file.
const STANDARD_INPUT: &str = "-";

/// What help shows.
pub(super) const EXAMPLES: &[Example] = &[
    Example {
        does: "Fill the bindings in a file",
        line: "keywright interpolate bindings.json --file filled.json",
        before: &[BINDINGS],
    },
    Example {
        does: "Fill the bindings that come through a pipe",
        line: "cat bindings.json | keywright interpolate --output yaml",
        before: &[BINDINGS],
    },
];

const BINDINGS: &str = r#"echo '{"services": [{"credentials": {"credhub-ref": "((/demo/database))"}}]}' >bindings.json"#;
