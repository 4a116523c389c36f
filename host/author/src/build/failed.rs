//! Why a project was not built.

use std::{
    io,
    path::{Path, PathBuf},
    process::ExitStatus,
};

use crate::component::NotEncodable;

/// Why a project was not built, in words for its author.
#[derive(Debug, thiserror::Error)]
pub enum BuildFailed {
    /// A file of the project can't be had.
    #[error("{doing} {}", file.display())]
    File {
        /// What was being done with it.
        doing: &'static str,
        /// Which one.
        file: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The folder holds the marks of several languages.
    #[error(
        "{} holds a project in more than one language: there are {} and {}",
        folder.display(), marks[0], marks[1]
    )]
    LanguageAmbiguous {
        /// The folder.
        folder: PathBuf,
        /// Two of the marks.
        marks: [&'static str; 2],
    },
    /// The folder holds the mark of no language.
    #[error(
        "{} holds no project of a plugin: there is no Cargo.toml, plugin.c, package.json, plugin.py or go.mod; \
         `keywright plugin new` makes one",
        folder.display()
    )]
    LanguageUnknown {
        /// The folder.
        folder: PathBuf,
    },
    /// A file that says what the project is can't be understood.
    #[error("{} {rule}", file.display())]
    ManifestMalformed {
        /// Which one.
        file: PathBuf,
        /// What it must hold.
        rule: &'static str,
    },
    /// No bindings can be made for the world of the project.
    #[error("making bindings for the WIT of the project: {cause}")]
    NotBound {
        /// Why not.
        cause: String,
    },
    /// What the tools made is no component, and none can be made of it.
    #[error("making a component of {}", file.display())]
    NotEncodable {
        /// What they made.
        file: PathBuf,
        /// Why not.
        source: NotEncodable,
    },
    /// The tools made no module that could become a component.
    #[error("{tool} made no WebAssembly module: {rule}")]
    ModuleMissing {
        /// Which tool.
        tool: &'static str,
        /// What makes one.
        rule: &'static str,
    },
    /// A tool ended with a failure; what it wrote has been shown.
    #[error("{tool} failed ({status})")]
    ToolFailed {
        /// Which one.
        tool: String,
        /// How it ended.
        status: ExitStatus,
    },
    /// A tool is not there.
    #[error("{tool} is missing: {remedy}")]
    ToolMissing {
        /// Which one.
        tool: &'static str,
        /// How to get it.
        remedy: &'static str,
    },
    /// A tool is there, but can't be started.
    #[error("{tool} can't be started")]
    ToolNotStarted {
        /// Which one.
        tool: String,
        /// Why not.
        source: io::Error,
    },
    /// The WIT of the project is wrong.
    #[error("reading the WIT in {}: {cause}", folder.display())]
    WitMalformed {
        /// Where it is.
        folder: PathBuf,
        /// What is wrong.
        cause: String,
    },
    /// The project has no WIT.
    #[error(
        "there is no {}, which holds the WIT that plugins are built for: take it from a project that \
         `keywright plugin new` makes",
        folder.display()
    )]
    WitMissing {
        /// Where it should be.
        folder: PathBuf,
    },
    /// The WIT of the project holds no world for plugins.
    #[error(
        "the package in {} has neither a world `plugin` nor a world `generator-plugin`",
        folder.display()
    )]
    WorldMissing {
        /// Where it is.
        folder: PathBuf,
    },
}

impl BuildFailed {
    pub(super) fn file(doing: &'static str, file: &Path, source: io::Error) -> Self {
        Self::File {
            doing,
            file: file.to_owned(),
            source,
        }
    }
}
