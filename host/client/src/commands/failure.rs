//! How a verb ends.

use std::process::ExitCode;

use crate::{
    Error,
    session::{FileFailure, SettingsRefused},
};

/// How a verb ended that did what it was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// All of it is done.
    Done,
    /// Some of it is done, and it was said what is not.
    InPart,
}

/// Why a verb did not do what it was told.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Failure {
    /// The server or the way to it.
    #[error(transparent)]
    Client(#[from] Error),
    /// The settings.
    #[error(transparent)]
    Settings(#[from] SettingsRefused),
    /// A file.
    #[error(transparent)]
    File(#[from] FileFailure),
    /// The arguments don't fit together, or what they name.
    #[error("{0}")]
    Usage(String),
    /// What was asked for is not there.
    #[error("{0}")]
    NotFound(String),
    /// A signal has asked it to end.
    #[error("interrupted")]
    Interrupted,
    /// What was made of the answer is no JSON.
    #[error("writing JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// Anything else.
    #[error("{0}")]
    Other(String),
}

impl Outcome {
    /// The status that the program ends with.
    pub(crate) fn status(self) -> ExitCode {
        match self {
            Self::Done => ExitCode::SUCCESS,
            Self::InPart => ExitCode::from(IN_PART),
        }
    }
}

impl Failure {
    /// The status that the program ends with.
    pub(crate) fn status(&self) -> ExitCode {
        ExitCode::from(match self {
            Self::Client(error) if error.is_not_found() => NOT_FOUND,
            Self::Client(error) if error.is_not_allowed() => NOT_ALLOWED,
            Self::Client(error) if error.is_unavailable() => UNAVAILABLE,
            Self::NotFound(_) => NOT_FOUND,
            Self::Usage(_) => USAGE,
            Self::Interrupted => INTERRUPTED,
            Self::Client(_)
            | Self::Settings(_)
            | Self::File(_)
            | Self::Json(_)
            | Self::Other(_) => OTHER,
        })
    }

    /// What can be done about it, where that is not plain.
    pub(crate) fn advice(&self) -> Option<&'static str> {
        match self {
            Self::Client(Error::NotLoggedIn | Error::LoginExpired) => Some(
                "Log in by `keywright login`, set KEYWRIGHT_CLIENT_ID and KEYWRIGHT_CLIENT_SECRET, or provide a token.",
            ),
            _ => None,
        }
    }
}

const OTHER: u8 = 1;
const USAGE: u8 = 2;
const IN_PART: u8 = 3;
const NOT_FOUND: u8 = 4;
const NOT_ALLOWED: u8 = 5;
const UNAVAILABLE: u8 = 6;
/// As shells have it of a program that SIGINT ended; also for the other signals that ask it to end.
pub(super) const INTERRUPTED: u8 = 130;
