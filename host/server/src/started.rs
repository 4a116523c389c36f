//! Why the server did not start, or ended.

use std::{error::Error, fmt::Write, path::Path};

/// Why the server did not start, in words for an operator: what it was doing, and the cause below.
#[derive(Debug, thiserror::Error)]
#[error("{doing}")]
pub(crate) struct StartRefused {
    doing: String,
    source: Option<Box<dyn Error + Send + Sync>>,
}

impl StartRefused {
    /// A refusal without a cause below it.
    pub(crate) fn new(what: impl Into<String>) -> Self {
        Self {
            doing: what.into(),
            source: None,
        }
    }

    /// What was being done, and what went wrong.
    pub(crate) fn while_doing(
        doing: impl Into<String>,
        cause: impl Into<Box<dyn Error + Send + Sync>>,
    ) -> Self {
        Self {
            doing: doing.into(),
            source: Some(cause.into()),
        }
    }

    /// A file that could not be read, written or understood.
    pub(crate) fn file(
        doing: &str,
        path: &Path,
        cause: impl Into<Box<dyn Error + Send + Sync>>,
    ) -> Self {
        Self::while_doing(format!("{doing} {}", path.display()), cause)
    }

    /// The refusal with its causes, outermost first, on one line.
    pub(crate) fn with_causes(&self) -> String {
        let mut text = self.to_string();
        let mut cause = self.source();
        while let Some(error) = cause {
            // Writing to a string does not fail.
            let _ = write!(text, ": {error}");
            cause = error.source();
        }
        text
    }
}
