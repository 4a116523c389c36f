//! The error that prevents the server from starting.

use std::{error::Error, path::Path};

use keywright_api::error_chain;
use keywright_storage::DatabaseOpenError;

/// The operation that failed, and its cause, for an operator.
#[derive(Debug, thiserror::Error)]
#[error("{doing}")]
pub(crate) struct StartupError {
    doing: String,
    source: Option<Box<dyn Error + Send + Sync>>,
}

impl StartupError {
    /// Creates an error without a cause.
    pub(crate) fn new(what: impl Into<String>) -> Self {
        Self {
            doing: what.into(),
            source: None,
        }
    }

    /// Creates an error from the failed operation and its cause.
    pub(crate) fn while_doing(
        doing: impl Into<String>,
        cause: impl Into<Box<dyn Error + Send + Sync>>,
    ) -> Self {
        Self {
            doing: doing.into(),
            source: Some(cause.into()),
        }
    }

    /// Creates an error about a file that could not be read, written or parsed.
    pub(crate) fn file(
        doing: &str,
        path: &Path,
        cause: impl Into<Box<dyn Error + Send + Sync>>,
    ) -> Self {
        Self::while_doing(format!("{doing} {}", path.display()), cause)
    }

    /// Returns the error with its causes, outermost first, on one line.
    pub(crate) fn with_causes(&self) -> String {
        error_chain(self)
    }
}

/// The message of the cause names the database or its setting.
impl From<DatabaseOpenError> for StartupError {
    fn from(cause: DatabaseOpenError) -> Self {
        Self::new(error_chain(&cause))
    }
}

/// Converts errors to a [`StartupError`] with the failed operation.
pub(crate) trait StartupContext<T> {
    /// Adds the operation.
    fn while_doing(self, doing: impl Into<String>) -> Result<T, StartupError>;

    /// Adds the operation, and the file that could not be read, written or parsed.
    fn on_file(self, doing: &str, path: &Path) -> Result<T, StartupError>;
}

impl<T, E: Into<Box<dyn Error + Send + Sync>>> StartupContext<T> for Result<T, E> {
    fn while_doing(self, doing: impl Into<String>) -> Result<T, StartupError> {
        self.map_err(|cause| StartupError::while_doing(doing, cause))
    }

    fn on_file(self, doing: &str, path: &Path) -> Result<T, StartupError> {
        self.map_err(|cause| StartupError::file(doing, path, cause))
    }
}
