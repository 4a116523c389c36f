//! `keywright plugin new` and `keywright plugin build`.

use std::{
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::Args;
use keywright_author::{Kind, Language, Programs, ProjectName, create};

use super::super::output;
use crate::started::{StartupContext, StartupError};

/// Creates a project.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  # Create a generator for the type api-key, in Rust
  keywright plugin new api-key --lang rust
  # Create one in C
  keywright plugin new door-code --lang c
  # Create one whose values a CA of the server signs, in Go
  keywright plugin new host-key --lang go --kind issued")]
pub(crate) struct New {
    /// Credential type, and the name of the folder: 1 to 63 characters of a-z, 0-9 and -, starting with a letter
    #[arg(value_name = "NAME")]
    name: ProjectName,
    /// Language: rust, c, js, python or go
    #[arg(long, value_name = "LANGUAGE")]
    lang: Language,
    /// Kind of plugin: generator; issued, a generator whose values a CA signs; or resolver
    #[arg(long, value_name = "KIND", default_value_t)]
    kind: Kind,
}

impl New {
    pub(super) fn execute(self) -> Result<ExitCode, StartupError> {
        let Self { name, lang, kind } = self;
        create(Path::new(""), &name, kind, lang).while_doing("creating the project")?;
        let role = match kind {
            Kind::Generator | Kind::Issued => "generator",
            Kind::Resolver => "resolver",
        };
        output::print(&format!(
            "Created a working {role} in the folder {name}. Next:\n\n  \
             cd {name}\n{}  \
             keywright plugin build\n  \
             keywright plugin test {name}.wasm\n\n\
             README.md explains what to edit and how to use it.\n",
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

/// Builds a component.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  # Build api-key.wasm from the project in the folder api-key
  keywright plugin build api-key
  # Write the component to another file
  keywright plugin build api-key --output key.wasm")]
pub(crate) struct Build {
    /// Folder of the project. A file in it determines the language: Cargo.toml (Rust), plugin.c (C), package.json
    /// (JavaScript), plugin.py (Python) or go.mod (Go).
    #[arg(value_name = "FOLDER", default_value = ".")]
    folder: PathBuf,
    /// File for the component. Default: the folder's name with the extension `.wasm`, in the folder.
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl Build {
    pub(super) fn execute(self) -> Result<ExitCode, StartupError> {
        let programs = Programs::on_path();
        let built = keywright_author::build(&self.folder, self.output.as_deref(), &programs)
            .while_doing("building the plugin")?;
        let bytes = fs::metadata(&built).on_file("reading", &built)?.len();
        output::print(&format!("{}, {bytes} bytes\n", built.display()))?;
        Ok(ExitCode::SUCCESS)
    }
}
