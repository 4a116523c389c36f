//! What a registry says for itself.

use std::fmt;

use serde::Deserialize;

/// What a registry says went wrong, as the distribution specification has it: short, and on one line, whatever it sent.
#[derive(Debug, Default)]
pub struct Told(String);

#[derive(Deserialize)]
struct Answer {
    errors: Vec<Error>,
}

#[derive(Deserialize)]
struct Error {
    #[serde(default)]
    code: String,
    #[serde(default)]
    message: String,
}

impl Told {
    /// What a body says; nothing where it is of another form.
    pub(crate) fn read(body: &[u8]) -> Self {
        let answer: Option<Answer> = keywright_json::read_bytes(body).ok();
        let first = answer.and_then(|answer| answer.errors.into_iter().next());
        let text = first.map(|error| format!("{} {}", error.code, error.message));
        Self(harmless(text.unwrap_or_default().trim()))
    }
}

impl fmt::Display for Told {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return Ok(());
        }
        write!(formatter, ", saying {:?}", self.0)
    }
}

/// A text of strangers, of which only the beginning is kept and nothing that steers a terminal or ends a line.
pub(crate) fn harmless(text: &str) -> String {
    let visible = |letter: char| if letter.is_control() { ' ' } else { letter };
    text.chars().take(CHARACTERS_MAX).map(visible).collect()
}

/// How much of what a registry says is repeated, in characters.
const CHARACTERS_MAX: usize = 200;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_is_short_and_on_one_line() {
        let long = "x".repeat(CHARACTERS_MAX + 1);
        for (body, expected) in [
            (
                r#"{"errors": [{"code": "DENIED", "message": "no access"}]}"#.to_owned(),
                ", saying \"DENIED no access\"".to_owned(),
            ),
            (
                r#"{"errors": [{"message": "a\nERROR b\u001b[2J"}]}"#.to_owned(),
                ", saying \"a ERROR b [2J\"".to_owned(),
            ),
            (
                format!(r#"{{"errors": [{{"message": "{long}"}}]}}"#),
                format!(", saying {:?}", &long[1..]),
            ),
            (r#"{"errors": []}"#.to_owned(), String::new()),
            ("<html>".to_owned(), String::new()),
        ] {
            assert_eq!(Told::read(body.as_bytes()).to_string(), expected, "{body}");
        }
    }
}
