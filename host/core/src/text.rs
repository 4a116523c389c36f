//! Text from guests, other programs and callers, in logs and responses.

use keywright_json::is_control_or_invisible;

/// Truncates untrusted text and replaces control and invisible characters, so that it is safe to print and to log.
pub fn sanitized(text: &str) -> String {
    let visible = |character: char| {
        if is_control_or_invisible(character) {
            ' '
        } else {
            character
        }
    };
    text.chars()
        .take(SANITIZED_CHARACTERS_MAX)
        .map(visible)
        .collect()
}

/// Sanitizes a guest's text for a caller: at most 1 KiB, without control and invisible characters.
pub fn for_caller(text: &str) -> String {
    printable(text, GUEST_TEXT_BYTES_MAX)
}

/// Sanitizes a guest's text for the log: at most 1 KiB of it, with control and invisible characters escaped.
pub fn for_log(text: &str) -> String {
    let mut escaped = String::new();
    for character in truncated(text, GUEST_TEXT_BYTES_MAX).chars() {
        if is_control_or_invisible(character) {
            escaped.extend(character.escape_default());
        } else {
            escaped.push(character);
        }
    }
    escaped
}

/// Truncates a text and removes control and invisible characters.
pub(crate) fn printable(text: &str, bytes_max: usize) -> String {
    truncated(text, bytes_max)
        .chars()
        .filter(|character| !is_control_or_invisible(*character))
        .collect()
}

fn truncated(text: &str, bytes_max: usize) -> &str {
    text.get(..text.floor_char_boundary(bytes_max))
        .unwrap_or_default()
}

/// The maximum length of sanitized text.
pub const SANITIZED_CHARACTERS_MAX: usize = 200;

/// The maximum length of a guest's text, in bytes. Longer texts are truncated.
const GUEST_TEXT_BYTES_MAX: usize = 1024;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ports::{PluginCallError, Violation};

    #[test]
    fn control_and_invisible_characters_are_removed_or_escaped() {
        let text = "a\u{202e}b\u{200b}c\nd";
        assert_eq!(for_caller(text), "abcd");
        assert_eq!(for_log(text), "a\\u{202e}b\\u{200b}c\\nd");
        let violation = Violation::new(Some("a\u{2066}b"), text);
        assert_eq!(violation.field.as_deref(), Some("ab"));
        assert_eq!(violation.rule, "abcd");
    }

    #[test]
    fn an_empty_text_of_a_guest_leaves_no_colon() {
        let refused = |text| PluginCallError::DocumentRefused(for_caller(text)).to_string();
        assert_eq!(refused("a"), "invalid document: a");
        assert_eq!(refused("\u{200b}"), "invalid document");
    }
}
