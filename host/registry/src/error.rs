//! Errors of pulls and pushes, and the error messages in responses of registries.

use std::{error::Error, io};

use keywright_core::text::sanitized;
use rustls::InvalidMessage;
use serde_json::Value;

/// The reason why a pull or push failed, worded for operators.
#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    /// The registry refused a request, or its data are unusable.
    #[error("{0}")]
    Failed(String),
    /// The registry lacks a resource.
    #[error("{0}")]
    NotFound(String),
    /// The signature is missing or could not be verified.
    #[error(transparent)]
    Signature(#[from] SignatureError),
    /// Contains the innermost cause.
    #[error("the registry does not respond: {0}")]
    Unreachable(String),
}

impl RegistryError {
    pub(crate) fn challenge(reason: &str) -> Self {
        Self::Failed(format!(
            "the registry requires an unsupported kind of authentication: {reason}"
        ))
    }

    pub(crate) fn manifest(rule: &str) -> Self {
        Self::Failed(format!("the manifest {rule}"))
    }

    pub(crate) fn too_large(resource: &str, bytes_max: u64) -> Self {
        Self::Failed(format!("{resource} is larger than {bytes_max} bytes"))
    }

    pub(crate) fn upload_address() -> Self {
        let what =
            "the registry returned no address for the upload, or one that does not use https";
        Self::Failed(what.to_owned())
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

/// Returns the first error of a response (OCI distribution specification, "Error Codes") for a message: after a comma, truncated and on
/// one line. The text is empty if the body has another format.
pub(crate) fn message_of(body: &[u8]) -> String {
    let response: Value = keywright_json::read_bytes(body).unwrap_or_default();
    let [code, message] = ["/errors/0/code", "/errors/0/message"].map(|field| {
        let field = response.pointer(field).and_then(Value::as_str);
        field.unwrap_or_default()
    });
    match sanitized(format!("{code} {message}").trim()) {
        text if text.is_empty() => text,
        text => format!(", message {text:?}"),
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
            let message = message_of(body.as_bytes());
            assert_eq!(message, expected, "{body}");
        }
    }
}
