//! `keywright interpolate`.

use std::{
    fs::File,
    io::{self, IsTerminal, Read},
    path::{Path, PathBuf},
};

use clap::{Args, ValueHint};
use serde_json::value::RawValue;
use zeroize::Zeroizing;

use super::{Context, Example, Failure, Outcome, Verb, help};
use crate::{
    output,
    session::{FileFailure, write_private},
};

/// Fill the references in a document of service bindings with the credentials that they name.
///
/// The document is a JSON object of arrays of bindings. Where the `credentials` of one hold a `credhub-ref`, they become the
/// value of that credential, which must be of type json. Everything else stays as it is.
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
        let path = self.document.as_deref();
        let document = match path.filter(|path| *path != Path::new("-")) {
            Some(path) => {
                let file =
                    File::open(path).map_err(|cause| FileFailure::new(path, "opened", cause))?;
                read(file, &path.display().to_string())?
            }
            None => {
                if io::stdin().is_terminal() {
                    output::note("The document is read from the terminal; end it with Ctrl-D.");
                }
                read(io::stdin().lock(), "standard input")?
            }
        };
        let filled = context.client()?.interpolate(&document).await?;
        match &self.file {
            Some(file) => write_private(file, filled.expose().as_bytes())?,
            None => context
                .output
                .show_document(serde_json::from_str::<&RawValue>(filled.expose())?)?,
        }
        Ok(Outcome::Done)
    }
}

/// A document from a source, which is named in what goes wrong.
fn read(source: impl Read, name: &str) -> Result<Zeroizing<String>, Failure> {
    let mut document = Zeroizing::new(String::new());
    let taken = source
        .take(DOCUMENT_BYTES_MAX + 1)
        .read_to_string(&mut document)
        .map_err(|cause| Failure::Other(format!("reading {name}: {cause}")))?;
    if taken as u64 > DOCUMENT_BYTES_MAX {
        return Err(Failure::Other(format!(
            "{name} is longer than {DOCUMENT_BYTES_MAX} bytes"
        )));
    }
    serde_json::from_str::<&RawValue>(&document)
        .map_err(|cause| Failure::Other(format!("{name} is no JSON: {cause}")))?;
    Ok(document)
}

/// The longest document that is read: more than servers take, unless their settings say otherwise.
const DOCUMENT_BYTES_MAX: u64 = 16 * 1024 * 1024;

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
