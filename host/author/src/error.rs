//! Errors of new projects and of builds.

use std::{error::Error, io, path::Path};

/// The reason why a project was not created or built, worded for the plugin's author.
#[derive(Debug, thiserror::Error)]
pub enum ProjectError {
    /// A tool is not installed.
    #[error("{tool} is missing; {remedy}")]
    ToolMissing {
        /// The tool.
        tool: &'static str,
        /// How to install it.
        remedy: &'static str,
    },
    /// Any other failure.
    #[error("{failure}")]
    Failed {
        /// What failed, and how to fix it if that is known.
        failure: String,
        /// The cause.
        source: Option<Box<dyn Error + Send + Sync>>,
    },
}

impl ProjectError {
    pub(crate) fn new(failure: impl Into<String>) -> Self {
        Self::Failed {
            failure: failure.into(),
            source: None,
        }
    }

    pub(crate) fn caused_by(failure: String, cause: impl Error + Send + Sync + 'static) -> Self {
        Self::Failed {
            failure,
            source: Some(Box::new(cause)),
        }
    }

    /// The error of a failed operation, such as `read`, on a file or folder.
    pub(crate) fn file(verb: &str, file: &Path, cause: io::Error) -> Self {
        Self::caused_by(format!("could not {verb} {}", file.display()), cause)
    }
}

impl From<anyhow::Error> for ProjectError {
    fn from(cause: anyhow::Error) -> Self {
        Self::new(format!("{cause:#}"))
    }
}
