//! Errors of builds.

use std::{
    io,
    path::{Path, PathBuf},
    process::ExitStatus,
};

/// The reason why a build failed, worded for the plugin's author.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// A file or folder can't be read or written.
    #[error("could not {verb} {}", file.display())]
    File {
        /// The failed operation, such as `read`.
        verb: &'static str,
        /// The path of the file or folder.
        file: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The folder contains projects in several languages.
    #[error(
        "{} contains projects in more than one language: it has both {} and {}",
        folder.display(), marks[0], marks[1]
    )]
    LanguageAmbiguous {
        /// The folder.
        folder: PathBuf,
        /// Two files that identify different languages.
        marks: [&'static str; 2],
    },
    /// The folder contains no project.
    #[error(
        "{} contains no plugin project: there is no Cargo.toml, plugin.c, package.json, plugin.py or go.mod; \
         create a project with `keywright plugin new`",
        folder.display()
    )]
    LanguageUnknown {
        /// The folder.
        folder: PathBuf,
    },
    /// Python can't import the project's module.
    #[error("could not import {location}: {cause}{}", hint.unwrap_or_default())]
    ImportFailed {
        /// The innermost file and line in the project's folder.
        location: String,
        /// The exception.
        cause: String,
        /// The likely reason.
        hint: Option<&'static str>,
    },
    /// The manifest of the project is malformed.
    #[error("{} {rule}", file.display())]
    ManifestMalformed {
        /// The path of the manifest.
        file: PathBuf,
        /// The rule that it breaks.
        rule: &'static str,
    },
    /// Generating bindings for the project's world failed.
    #[error("could not generate bindings for the WIT of the project: {cause}")]
    NotBound {
        /// The cause.
        cause: String,
    },
    /// The output of the language's tools can't be converted to a component.
    #[error("could not create a component from {}", file.display())]
    NotEncodable {
        /// The output of the tools.
        file: PathBuf,
        /// The cause.
        source: EncodingError,
    },
    /// The language's tools produced no module.
    #[error("{tool} produced no WebAssembly module: {rule}")]
    ModuleMissing {
        /// The tool.
        tool: &'static str,
        /// The rule that the project breaks.
        rule: &'static str,
    },
    /// A tool failed. Its output has been printed.
    #[error("{tool} failed ({status})")]
    ToolFailed {
        /// The tool.
        tool: String,
        /// Its exit status.
        status: ExitStatus,
    },
    /// A tool is not installed.
    #[error("{tool} is missing; {remedy}")]
    ToolMissing {
        /// The tool.
        tool: &'static str,
        /// How to install it.
        remedy: &'static str,
    },
    /// A tool is installed, but can't be started.
    #[error("could not start {tool}")]
    ToolNotStarted {
        /// The tool.
        tool: String,
        /// The cause.
        source: io::Error,
    },
    /// The WIT of the project is malformed.
    #[error("could not parse the WIT in {}: {cause}", folder.display())]
    WitMalformed {
        /// The folder with the WIT.
        folder: PathBuf,
        /// The cause.
        cause: String,
    },
    /// The project has no WIT.
    #[error(
        "{} does not exist: copy this folder, which contains the WIT for plugins, from a project created by \
         `keywright plugin new`",
        folder.display()
    )]
    WitMissing {
        /// The missing folder.
        folder: PathBuf,
    },
    /// The WIT of the project contains no world for plugins.
    #[error(
        "the package in {} has neither a world `plugin` nor a world `generator-plugin`",
        folder.display()
    )]
    WorldMissing {
        /// The folder with the WIT.
        folder: PathBuf,
    },
}

impl BuildError {
    pub(crate) fn file(verb: &'static str, file: &Path, source: io::Error) -> Self {
        Self::File {
            verb,
            file: file.to_owned(),
            source,
        }
    }
}

/// The reason why no component can be created from a module.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct EncodingError(String);

impl From<anyhow::Error> for EncodingError {
    fn from(cause: anyhow::Error) -> Self {
        Self(format!("{cause:#}"))
    }
}
