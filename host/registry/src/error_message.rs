//! Error messages in responses of registries.

use std::fmt;

use serde::Deserialize;

/// The first error of a response (OCI distribution specification, "Error Codes"), truncated and on one line.
#[derive(Debug, Default)]
pub struct ErrorMessage(String);

#[derive(Deserialize)]
struct ErrorResponse {
    errors: Vec<Error>,
}

#[derive(Deserialize)]
struct Error {
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
