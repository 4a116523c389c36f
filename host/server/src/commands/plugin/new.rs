//! `keywright plugin new`.

use std::{path::Path, process::ExitCode};

use clap::Args;
use keywright_author::{Language, ProjectName, begin};

use crate::{commands::output, started::StartRefused};

/// Creates a project.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  # Create a generator for the type api-key, in Rust
  keywright plugin new api-key --lang rust
  # Create one in C
  keywright plugin new door-code --lang c")]
pub(crate) struct New {
    /// The credential type, and the name of the folder: 1 to 63 characters of a-z, 0-9 and -, starting with a letter
    #[arg(value_name = "NAME")]
    name: ProjectName,
    /// The language: rust, c, js, python or go
    #[arg(long, value_name = "LANGUAGE")]
    lang: Language,
}

impl New {
    pub(super) fn execute(self) -> Result<ExitCode, StartRefused> {
        let Self { name, lang } = self;
        begin(Path::new("."), &name, lang)
            .map_err(|refused| StartRefused::while_doing("creating the project", refused))?;
        output::print(&format!(
            "{name} holds a generator that works. Next:\n\n  \
             cd {name}\n{}  \
             keywright plugin build\n  \
             keywright plugin test {name}.wasm\n\n\
             README.md says what to edit, and how to use it.\n",
            preparation(lang)
        ))?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Returns the command to run once before projects in a language can be built.
fn preparation(language: Language) -> &'static str {
    match language {
        Language::C => "  pip install ziglang\n",
        Language::Go => "",
        Language::JavaScript => "  npm install\n",
        Language::Python => "  pip install -r requirements.txt\n",
        Language::Rust => "  rustup target add wasm32-unknown-unknown\n",
    }
}
