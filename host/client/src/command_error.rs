//! The outcomes and failures of commands, and their exit statuses.

use std::{env, path::PathBuf, process::ExitCode};

use tokio::task::JoinError;

use crate::{Error, client::UNTRUSTED, new_file::FileAccessError};

/// The outcome of a command that did not fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Completion {
    /// The command succeeded completely.
    Full,
    /// The command succeeded partially, the user declined, or a check has findings. The command has reported it.
    Partial,
}

/// The reason why a command failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CommandError {
    #[error(transparent)]
    Client(#[from] Error),
    #[error("logged in, but the server refuses the token: {0}; check the audience and the scopes")]
    TokenRefused(Error),
    #[error(
        "the server does not accept the client certificate; the server's trusted CAs for clients (server.tls.client_authorities) \
         must include the CA that issued the certificate"
    )]
    CertificateIgnored,
    #[error("{} is malformed; log in again", .0.display())]
    SessionMalformed(PathBuf),
    #[error(transparent)]
    File(#[from] FileAccessError),
    /// The arguments are invalid.
    #[error("{0}")]
    Usage(String),
    /// The requested object does not exist.
    #[error("{0}")]
    NotFound(String),
    #[error("interrupted")]
    Interrupted,
    #[error("writing JSON: {0}")]
    Json(#[from] serde_json::Error),
    #[error("an import task failed: {0}")]
    Task(#[from] JoinError),
    #[error("{0}")]
    Other(String),
}

impl Completion {
    pub(crate) fn full_if(is_full: bool) -> Self {
        if is_full { Self::Full } else { Self::Partial }
    }

    pub(crate) fn status(self) -> ExitCode {
        match self {
            Self::Full => ExitCode::SUCCESS,
            Self::Partial => ExitCode::from(PARTIAL),
        }
    }
}

impl CommandError {
    pub(crate) fn status(&self) -> ExitCode {
        ExitCode::from(match self {
            Self::Client(error) if error.is_not_found() => NOT_FOUND,
            Self::Client(error) if error.is_not_allowed() => NOT_ALLOWED,
            Self::Client(error) if error.is_unavailable() => UNAVAILABLE,
            Self::TokenRefused(_) | Self::CertificateIgnored => NOT_ALLOWED,
            Self::NotFound(_) => NOT_FOUND,
            Self::Usage(_) => USAGE,
            Self::Interrupted => INTERRUPTED,
            Self::Client(_)
            | Self::SessionMalformed(_)
            | Self::File(_)
            | Self::Json(_)
            | Self::Task(_)
            | Self::Other(_) => OTHER,
        })
    }

    /// Returns advice for the user, or `None` if the error message suffices.
    pub(crate) fn advice(&self) -> Option<&'static str> {
        match self {
            Self::Client(Error::NotLoggedIn | Error::LoginExpired) => Some(
                "Run `keywright login`, set KEYWRIGHT_CLIENT_ID and KEYWRIGHT_CLIENT_SECRET, or set KEYWRIGHT_TOKEN or `--token-file`.",
            ),
            Self::Client(Error::GrantUnsupported("device_authorization_endpoint")) => Some(
                "Log in with another option: `--username`, `--browser`, or `--client-id` alone.",
            ),
            Self::Client(Error::GrantUnsupported(_)) => Some(
                "Log in with another option: `--username`, `--device`, or `--client-id` alone.",
            ),
            Self::Client(error) if is_untrusted(error) => Some(
                "Check the address. The file of `--ca-cert`, or of the saved login, must contain the CA of the server's certificate.",
            ),
            Self::Client(Error::ProviderUnavailable(cause)) if is_untrusted(cause) => Some(
                "The file of `--ca-cert`, or of the saved login, must also contain the CA of the identity provider's certificate.",
            ),
            Self::Client(error) if is_unreachable(error) && is_proxy_set() => {
                Some("Also check the proxy in HTTPS_PROXY or ALL_PROXY.")
            }
            Self::Client(Error::AuthoritiesMalformed) => {
                Some("Check the file of `--ca-cert`, or of the saved login.")
            }
            Self::Client(
                Error::ClientCertificateMalformed | Error::ClientCertificateRefused { .. },
            ) => Some("Check the files of `--cert` and `--key`, or of the saved login."),
            _ => None,
        }
    }
}

fn is_untrusted(error: &Error) -> bool {
    matches!(error, Error::Unreachable { cause, .. } if cause == UNTRUSTED)
}

fn is_unreachable(error: &Error) -> bool {
    match error {
        Error::ProviderUnavailable(cause) => is_unreachable(cause),
        error => matches!(error, Error::Unreachable { .. }),
    }
}

fn is_proxy_set() -> bool {
    let mut variables = ["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"].iter();
    variables.any(|name| env::var_os(name).is_some_and(|value| !value.is_empty()))
}

const OTHER: u8 = 1;
const USAGE: u8 = 2;
const PARTIAL: u8 = 3;
const NOT_FOUND: u8 = 4;
const NOT_ALLOWED: u8 = 5;
const UNAVAILABLE: u8 = 6;
/// The exit status that shells report after SIGINT; also used for SIGTERM and SIGHUP.
pub(crate) const INTERRUPTED: u8 = 130;

/// The help sections on exit statuses and retries.
pub const EXIT_STATUSES: &str = "\
Exit statuses:
    0  success
    1  failure
    2  usage error
    3  partial success, declined confirmation, or findings
    4  not found, or not accessible to you
    5  not logged in, or not allowed
    6  server unreachable or unavailable
  130  interrupted by SIGINT, SIGTERM or SIGHUP; requests in progress may have taken effect

Retries:
  The client retries a request up to four times while it can't connect to the server or the server responds with
  503, except in read-only mode. A write may have taken effect despite a 503; the retry then adds another version.
  KEYWRIGHT_CLIENT_RETRIES=0 disables retries.";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::Loss;

    #[test]
    fn the_advice_names_the_server_whose_ca_is_not_trusted() {
        let untrusted = || Error::Unreachable {
            server: "https://a".to_owned(),
            cause: UNTRUSTED.to_owned(),
            loss: Loss::Lasting,
        };
        let advice = |error| CommandError::Client(error).advice().unwrap_or_default();
        assert!(advice(untrusted()).contains("the server's certificate"));
        let provider = Error::ProviderUnavailable(Box::new(untrusted()));
        assert!(advice(provider).contains("the identity provider's certificate"));
    }
}
