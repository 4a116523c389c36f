//! Errors of pulls and pushes, and the error messages in responses of registries.

use std::{error::Error, fmt, io};

use keywright_core::text::sanitized;
use rustls::InvalidMessage;
use serde_json::Value;

use crate::Digest;

/// The reason why a pull or push failed, worded for operators.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the variants mean")]
pub enum RegistryError {
    #[error(
        "the registry denies {} access to {resource} (status 401{message}); check the user and password configured for it",
        if *.has_credentials { "the configured user" } else { "anonymous users" }
    )]
    Unauthorized {
        resource: &'static str,
        has_credentials: bool,
        message: ErrorMessage,
    },
    #[error("the registry requires an unsupported kind of authentication: {0}")]
    ChallengeUnknown(&'static str),
    #[error(
        "{resource} has the digest {found}, expected {expected}; the registry's data is corrupt or was tampered with"
    )]
    DigestDiffers {
        resource: &'static str,
        expected: Digest,
        found: Digest,
    },
    #[error(
        "{resource} has {found} bytes, but its descriptor states {expected}; push the component again with a tool that writes correct sizes"
    )]
    SizeDiffers {
        resource: &'static str,
        expected: u64,
        found: usize,
    },
    #[error("the transfer took longer than {seconds} s")]
    TooSlow { seconds: u64 },
    #[error("{resource} is larger than {bytes_max} bytes")]
    TooLarge {
        resource: &'static str,
        bytes_max: u64,
    },
    #[error("the manifest {0}")]
    ManifestMalformed(&'static str),
    #[error(
        "{resource} is not in the registry (status 404{message}); check the host, the repository and the digest"
    )]
    NotFound {
        resource: &'static str,
        message: ErrorMessage,
    },
    #[error("the registry responded to the request for {resource} with status {status}{message}")]
    Responded {
        resource: &'static str,
        status: u16,
        message: ErrorMessage,
    },
    #[error("the registry returned no address for the upload, or one that does not use https")]
    UploadAddress,
    #[error(
        "the host does not accept {resource} (status 404{message}); check that it is a registry, and that the repository exists"
    )]
    UploadNotFound {
        resource: &'static str,
        message: ErrorMessage,
    },
    #[error(transparent)]
    Signature(#[from] SignatureError),
    /// Contains the innermost cause.
    #[error("the registry does not respond: {0}")]
    Unreachable(String),
}

impl RegistryError {
    /// Returns whether the signature is missing or could not be verified.
    pub fn is_of_signature(&self) -> bool {
        matches!(self, Self::Signature(_))
    }
}

impl From<reqwest::Error> for RegistryError {
    /// Omits URLs, because the URLs of redirects and uploads can contain credentials.
    fn from(error: reqwest::Error) -> Self {
        let error = error.without_url();
        let mut cause: &(dyn Error + 'static) = &error;
        // `source` skips the error that an `io::Error` wraps.
        while let Some(inner) = match cause.downcast_ref().and_then(io::Error::get_ref) {
            Some(wrapped) => Some(wrapped as &(dyn Error + 'static)),
            None => cause.source(),
        } {
            cause = inner;
        }
        let reason = match cause.downcast_ref() {
            Some(rustls::Error::InvalidMessage(InvalidMessage::InvalidContentType)) => {
                "it does not speak TLS; if it may be used over plain HTTP, set plain_http (--plain-http)".to_owned()
            }
            _ => match cause.to_string().as_str() {
                // The error type of the HTTP client is private.
                "invalid HTTP version parsed" => {
                    "it does not speak plain HTTP; if plain_http (--plain-http) is set, remove it".to_owned()
                }
                reason => reason.to_owned(),
            },
        };
        Self::Unreachable(reason)
    }
}

/// The reason why a signature was rejected.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the variants mean")]
pub enum SignatureError {
    #[error("a cosign key can only verify components in a registry; sign files with minisign")]
    CosignOfFile,
    #[error("its signature is malformed")]
    Malformed,
    #[error("the component is not signed: expected the signature {0}")]
    Missing(String),
    #[error("its signature by this key is for another manifest, {0}")]
    OfAnother(String),
    #[error("its signature was made with another key than the configured one")]
    OtherKey,
    #[error("could not read its signature")]
    Unreadable(#[source] io::Error),
    #[error(
        "its signature does not match: it is for another component, or the signature was modified"
    )]
    Wrong,
}

/// The first error of a response (OCI distribution specification, "Error Codes"), truncated and on one line.
#[derive(Debug, Default)]
pub struct ErrorMessage(String);

impl ErrorMessage {
    /// Parses a response body. The message is empty if the body has another format.
    pub(crate) fn read(body: &[u8]) -> Self {
        let response: Value = keywright_json::read_bytes(body).unwrap_or_default();
        let [code, message] = ["/errors/0/code", "/errors/0/message"].map(|field| {
            response
                .pointer(field)
                .and_then(Value::as_str)
                .unwrap_or_default()
        });
        Self(sanitized(format!("{code} {message}").trim()))
    }
}

impl fmt::Display for ErrorMessage {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return Ok(());
        }
        write!(formatter, ", message {:?}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use keywright_core::text::SANITIZED_CHARACTERS_MAX;

    use super::*;

    #[test]
    fn message_is_truncated_and_on_one_line() {
        let long = "x".repeat(SANITIZED_CHARACTERS_MAX + 1);
        for (body, expected) in [
            (
                r#"{"errors": [{"code": "DENIED", "message": "no access"}]}"#.to_owned(),
                ", message \"DENIED no access\"".to_owned(),
            ),
            (
                r#"{"errors": [{"message": "a\nERROR b\u001b[2J\u202e"}]}"#.to_owned(),
                ", message \"a ERROR b [2J \"".to_owned(),
            ),
            (
                format!(r#"{{"errors": [{{"message": "{long}"}}]}}"#),
                format!(", message {:?}", &long[1..]),
            ),
            (r#"{"errors": []}"#.to_owned(), String::new()),
            ("<html>".to_owned(), String::new()),
        ] {
            let message = ErrorMessage::read(body.as_bytes()).to_string();
            assert_eq!(message, expected, "{body}");
        }
    }
}
