//! `keywright plugin build`.

use std::{fs, path::PathBuf, process::ExitCode};

use clap::Args;
use keywright_author::Programs;

use crate::{commands::output, started::StartRefused};

/// Builds a component.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  # Build api-key.wasm from the project in the folder api-key
  keywright plugin build api-key
  # Write the component to another file
  keywright plugin build api-key --output key.wasm")]
pub(crate) struct Build {
    /// The project's folder. A file in it determines the language: Cargo.toml (Rust), plugin.c (C), package.json
    /// (JavaScript), plugin.py (Python) or go.mod (Go).
    #[arg(value_name = "FOLDER", default_value = ".")]
    folder: PathBuf,
    /// The file for the component. Defaults to the folder's name with the extension `.wasm`, in the folder.
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl Build {
    pub(super) fn execute(self) -> Result<ExitCode, StartRefused> {
        let programs = Programs::on_path();
        let built = keywright_author::build(&self.folder, self.output.as_deref(), &programs)
            .map_err(|failed| StartRefused::while_doing("building the plugin", failed))?;
        let bytes = fs::metadata(&built)
            .map_err(|cause| StartRefused::file("reading", &built, cause))?
            .len();
        output::print(&format!("{}, {bytes} bytes\n", built.display()))?;
        Ok(ExitCode::SUCCESS)
    }
}
