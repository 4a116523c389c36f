//! Sanitizes texts of guests for callers and for the log.

use keywright_core::ports::Violation;
use keywright_json::is_control_or_invisible;

/// The maximum length of a guest's text, in bytes. Longer texts are truncated.
pub(crate) const GUEST_TEXT_BYTES_MAX: usize = 1024;
/// The maximum length of a field name, in bytes. Longer names are truncated.
const FIELD_BYTES_MAX: usize = 256;

/// Sanitizes a guest's text for a caller: at most 1 KiB, without control and invisible characters.
pub(crate) fn for_caller(text: &str) -> String {
    printable(text, GUEST_TEXT_BYTES_MAX)
}

/// Sanitizes a guest's text for the log: at most 1 KiB of it, with control and invisible characters escaped.
pub(crate) fn for_log(text: &str) -> String {
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

/// Creates a violation from a field name and a rule that may come from a guest or a caller.
pub(crate) fn violation(field: Option<&str>, rule: &str) -> Violation {
    Violation {
        field: field.map(|name| printable(name, FIELD_BYTES_MAX)),
        rule: for_caller(rule),
    }
}

fn printable(text: &str, bytes_max: usize) -> String {
    truncated(text, bytes_max)
        .chars()
        .filter(|character| !is_control_or_invisible(*character))
        .collect()
}

fn truncated(text: &str, bytes_max: usize) -> &str {
    text.get(..text.floor_char_boundary(bytes_max))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_and_invisible_characters_are_removed_or_escaped() {
        let text = "a\u{202e}b\u{200b}c\nd";
        assert_eq!(for_caller(text), "abcd");
        assert_eq!(for_log(text), "a\\u{202e}b\\u{200b}c\\nd");
        let violation = violation(Some("a\u{2066}b"), text);
        assert_eq!(violation.field.as_deref(), Some("ab"));
        assert_eq!(violation.rule, "abcd");
    }
}
