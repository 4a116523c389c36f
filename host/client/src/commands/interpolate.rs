//! `keywright interpolate`.

use std::{
    io::{self, IsTerminal},
    path::{Path, PathBuf},
};

use clap::{Args, ValueHint};

use super::run::{CommandError, Completion, Context, Run, help};
use crate::{
    input::text_of,
    new_file::{Readers, write_whole},
    output,
};

/// Substitute credential references in service bindings
///
/// The document is a JSON object of arrays of bindings. If the `credentials` of a binding contain a `store-ref`, a
/// `credhub-ref` or a `credhub_ref`, they are replaced by the value of the referenced credential, which must be of type json. The
/// server's configuration can name other fields. Everything else is unchanged.
#[derive(Debug, Args)]
#[command(after_help = help(EXAMPLES))]
pub struct Interpolate {
    /// File with the document; `-` for standard input, which is the default.
    #[arg(value_name = "DOCUMENT", value_hint = ValueHint::FilePath)]
    document: Option<PathBuf>,
    /// File to write, with mode 0600, instead of standard output.
    #[arg(long, short, value_name = "FILE", value_hint = ValueHint::FilePath)]
    file: Option<PathBuf>,
}

impl Run for Interpolate {
    async fn run(self, context: &Context) -> Result<Completion, CommandError> {
        let path = self.document.as_deref().unwrap_or(STANDARD_INPUT.as_ref());
        let is_typed = path == Path::new(STANDARD_INPUT) && io::stdin().is_terminal();
        if is_typed {
            output::note("Type the document; end it with Ctrl-D.");
        }
        let document = text_of(path)?;
        let invalid = |reason: &str| {
            let name = match path.display().to_string().as_str() {
                STANDARD_INPUT => "standard input".to_owned(),
                file => file.to_owned(),
            };
            CommandError::Other(format!("{name} {reason}"))
        };
        if document.trim().is_empty() {
            return Err(invalid("is empty"));
        }
        keywright_json::check(&document)
            .map_err(|cause| invalid(&format!("is not a valid document: {cause}")))?;
        if !document.trim_start().starts_with('{') {
            return Err(invalid("must contain a JSON object"));
        }
        let filled = context.client()?.interpolate(&document).await?;
        match &self.file {
            Some(file) => write_whole(file, filled.expose().as_bytes(), Readers::Owner)?,
            None => context.output.show_document(
                keywright_json::raw(filled.expose()).map_err(serde_json::Error::from)?,
            )?,
        }
        Ok(Completion::Full)
    }
}

const STANDARD_INPUT: &str = "-";

pub(super) const EXAMPLES: &str = r#"$ echo '{"services": [{"credentials": {"credhub-ref": "((/demo/database))"}}]}' >bindings.json
# Resolve the bindings in a file
keywright interpolate bindings.json --file filled.json
# Resolve bindings from a pipe
cat bindings.json | keywright interpolate --output yaml"#;
