//! The supported languages and kinds of plugin projects.

use std::path::Path;

use strum::{Display, EnumString, VariantArray};

use crate::error::ProjectError;

type ParseError = &'static str;

/// A programming language for plugins. `Display` is the name on the command line.
#[derive(Clone, Copy, Debug, Display, EnumString, PartialEq, Eq, VariantArray)]
#[strum(
    serialize_all = "lowercase",
    parse_err_fn = unknown_language,
    parse_err_ty = ParseError
)]
pub enum Language {
    /// Rust.
    Rust,
    /// C.
    C,
    /// JavaScript, interpreted by `QuickJS` inside the component.
    #[strum(serialize = "js")]
    JavaScript,
    /// Python, interpreted by `CPython` inside the component.
    Python,
    /// Go, with its standard compiler.
    Go,
}

impl Language {
    /// Returns the file that identifies a project, and the source file in new projects.
    const fn files(self) -> (&'static str, &'static str) {
        match self {
            Self::C => ("plugin.c", "plugin.c"),
            Self::Go => ("go.mod", "plugin.go"),
            Self::JavaScript => ("package.json", "plugin.js"),
            Self::Python => ("plugin.py", "plugin.py"),
            Self::Rust => ("Cargo.toml", "src/lib.rs"),
        }
    }

    /// Returns the file that identifies a project in this language.
    pub const fn mark(self) -> &'static str {
        self.files().0
    }

    /// Returns the path of the source file in new projects.
    pub(crate) const fn source(self) -> &'static str {
        self.files().1
    }

    pub(crate) fn of_project(folder: &Path) -> Result<Self, ProjectError> {
        let is_marked = |language: &&Self| folder.join(language.mark()).is_file();
        let mut marked = Self::VARIANTS.iter().filter(is_marked);
        let is_folder = folder.is_dir();
        let folder = folder.display();
        if !is_folder {
            let what = format!("{folder} is not a folder; name the folder of a project");
            return Err(ProjectError::new(what));
        }
        let language = marked.next().ok_or_else(|| {
            ProjectError::new(format!(
                "{folder} contains no plugin project: there is no Cargo.toml, plugin.c, package.json, plugin.py or go.mod; \
                 create a project with `keywright plugin new`"
            ))
        })?;
        match marked.next() {
            None => Ok(*language),
            Some(other) => Err(ProjectError::new(format!(
                "{folder} contains projects in more than one language: it has both {} and {}",
                language.mark(),
                other.mark()
            ))),
        }
    }
}

fn unknown_language(_: &str) -> ParseError {
    "must be rust, c, js, python or go"
}

/// A kind of plugin. `Display` is the name on the command line.
#[derive(Clone, Copy, Debug, Default, Display, EnumString, PartialEq, Eq, VariantArray)]
#[strum(
    serialize_all = "lowercase",
    parse_err_fn = unknown_kind,
    parse_err_ty = ParseError
)]
pub enum Kind {
    /// A generator.
    #[default]
    Generator,
    /// A generator whose values a CA of the server signs.
    Issued,
    /// A resolver.
    Resolver,
}

fn unknown_kind(_: &str) -> ParseError {
    "must be generator, issued or resolver"
}
