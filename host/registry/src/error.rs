//! Errors of pulls and pushes, and the error messages in responses of registries.

use std::{error::Error, fmt, io};

use serde::Deserialize;

use crate::Digest;

/// The reason why a pull or push failed, worded for operators.
#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    /// The registry requires a login. Either it rejected the configured credentials, or no credentials are configured.
    #[error(
        "the registry denies {} access to {resource} (status 401{message}); check the user and password configured for it",
        if *.has_credentials { "the configured user" } else { "anonymous users" }
    )]
    Unauthorized {
        /// The requested resource.
        resource: &'static str,
        /// Whether credentials are configured for the registry.
        has_credentials: bool,
        /// The registry's error message.
        message: ErrorMessage,
    },
    /// The registry requires a kind of authentication that this crate does not support.
    #[error("the registry requires an unsupported kind of authentication: {0}")]
    ChallengeUnknown(&'static str),
    /// The received bytes have another digest than expected.
    #[error(
        "{resource} has the digest {found}, expected {expected}; the registry's data is corrupt or was tampered with"
    )]
    DigestDiffers {
        /// The received resource.
        resource: &'static str,
        /// The expected digest.
        expected: Digest,
        /// The actual digest.
        found: Digest,
    },
    /// The received bytes have another size than their descriptor states.
    #[error(
        "{resource} has {found} bytes, but its descriptor states {expected}; push the component again with a tool that writes correct sizes"
    )]
    SizeDiffers {
        /// The received resource.
        resource: &'static str,
        /// The size in the descriptor, in bytes.
        expected: u64,
        /// The actual size, in bytes.
        found: usize,
    },
    /// The deadline passed.
    #[error("the transfer took longer than {seconds} s")]
    TooSlow {
        /// The deadline, in seconds.
        seconds: u64,
    },
    /// A response exceeds its size limit.
    #[error("{resource} is larger than {bytes_max} bytes")]
    TooLarge {
        /// The received resource.
        resource: &'static str,
        /// The size limit, in bytes.
        bytes_max: u64,
    },
    /// A manifest is malformed, or does not describe a component.
    #[error("the manifest {0}")]
    ManifestMalformed(&'static str),
    /// The registry does not have the resource.
    #[error(
        "{resource} is not in the registry (status 404{message}); check the host, the repository and the digest"
    )]
    NotFound {
        /// The requested resource.
        resource: &'static str,
        /// The registry's error message.
        message: ErrorMessage,
    },
    /// The registry responded with an unexpected status.
    #[error("the registry responded to the request for {resource} with status {status}{message}")]
    Responded {
        /// The requested resource.
        resource: &'static str,
        /// The status.
        status: u16,
        /// The registry's error message.
        message: ErrorMessage,
    },
    /// The registry's address for an upload is missing, malformed, or less protected than the registry itself.
    #[error("the registry returned no address for the upload, or one that does not use https")]
    UploadAddress,
    /// The registry has no such repository, or is not a registry.
    #[error(
        "the host does not accept {resource} (status 404{message}); check that it is a registry, and that the repository exists"
    )]
    UploadNotFound {
        /// The sent resource.
        resource: &'static str,
        /// The registry's error message.
        message: ErrorMessage,
    },
    /// The signature is missing or could not be verified.
    #[error(transparent)]
    Signature(#[from] SignatureError),
    /// The registry is unreachable, or closed the connection in the middle of a response. Contains the innermost cause.
    #[error("the registry does not respond: {0}")]
    Unreachable(String),
}

impl RegistryError {
    /// Returns whether the signature is missing or could not be verified.
    #[must_use]
    pub fn is_of_signature(&self) -> bool {
        matches!(self, Self::Signature(_))
    }
}

impl From<reqwest::Error> for RegistryError {
    /// Omits URLs, because the URLs of redirects and uploads can contain credentials.
    fn from(error: reqwest::Error) -> Self {
        let error = error.without_url();
        let mut cause: &dyn Error = &error;
        while let Some(inner) = cause.source() {
            cause = inner;
        }
        Self::Unreachable(cause.to_string())
    }
}

/// The reason why a signature was rejected.
#[derive(Debug, thiserror::Error)]
pub enum SignatureError {
    /// A cosign key is configured for a file.
    #[error("a cosign key can only verify components in a registry; sign files with minisign")]
    CosignOfFile,
    /// The signature is malformed.
    #[error("its signature is malformed")]
    Malformed,
    /// There is no signature.
    #[error("the component is not signed: expected the signature {0}")]
    Missing(String),
    /// The signature is for another manifest.
    #[error("its signature by this key is for another manifest, {0}")]
    OfAnother(String),
    /// The signature was made with another key.
    #[error("its signature was made with another key than the configured one")]
    OtherKey,
    /// The signature file is unreadable.
    #[error("its signature can't be read")]
    Unreadable(#[source] io::Error),
    /// The signature does not match the signed bytes.
    #[error(
        "its signature does not match: it is for another component, or the signature was modified"
    )]
    Wrong,
}

/// The first error of a response (OCI distribution specification, "Error Codes"), truncated and on one line.
#[derive(Debug, Default)]
pub struct ErrorMessage(String);

#[derive(Deserialize)]
struct ErrorResponse {
    errors: Vec<ErrorEntry>,
}

#[derive(Deserialize)]
struct ErrorEntry {
    #[serde(default)]
    code: String,
    #[serde(default)]
    message: String,
}

impl ErrorMessage {
    /// Parses a response body. The message is empty if the body has another format.
    pub(crate) fn read(body: &[u8]) -> Self {
        let response: Option<ErrorResponse> = keywright_json::read_bytes(body).ok();
        let first = response.and_then(|response| response.errors.into_iter().next());
        let text = first.map(|error| format!("{} {}", error.code, error.message));
        Self(sanitized(text.unwrap_or_default().trim()))
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

/// Truncates untrusted text and replaces control characters, so that it is safe to print and to log.
pub(crate) fn sanitized(text: &str) -> String {
    let visible = |letter: char| if letter.is_control() { ' ' } else { letter };
    text.chars().take(CHARACTERS_MAX).map(visible).collect()
}

/// The maximum length of sanitized text.
const CHARACTERS_MAX: usize = 200;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn message_is_truncated_and_on_one_line() {
        let long = "x".repeat(CHARACTERS_MAX + 1);
        for (body, expected) in [
            (
                r#"{"errors": [{"code": "DENIED", "message": "no access"}]}"#.to_owned(),
                ", message \"DENIED no access\"".to_owned(),
            ),
            (
                r#"{"errors": [{"message": "a\nERROR b\u001b[2J"}]}"#.to_owned(),
                ", message \"a ERROR b [2J\"".to_owned(),
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
