//! Sanitizes texts of guests for callers and for the log, and encodes bytes as hexadecimal.

use keywright_core::ports::Violation;

/// The maximum length of a guest's text, in bytes. Longer texts are truncated.
pub(crate) const GUEST_TEXT_BYTES_MAX: usize = 1024;
/// The maximum length of a field name, in bytes. Longer names are truncated.
const FIELD_BYTES_MAX: usize = 256;

/// Sanitizes a guest's text for a caller: at most 1 KiB, without control characters.
pub(crate) fn for_caller(text: &str) -> String {
    printable(text, GUEST_TEXT_BYTES_MAX)
}

/// Sanitizes a guest's text for the log: at most 1 KiB of it, with control characters escaped.
pub(crate) fn for_log(text: &str) -> String {
    let mut escaped = String::new();
    for character in truncated(text, GUEST_TEXT_BYTES_MAX).chars() {
        if character.is_control() {
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
        .filter(|character| !character.is_control())
        .collect()
}

fn truncated(text: &str, bytes_max: usize) -> &str {
    text.get(..text.floor_char_boundary(bytes_max))
        .unwrap_or_default()
}

/// Encodes bytes as lower-case hexadecimal.
pub(crate) fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut digits, byte| {
        let nibbles = [byte >> 4, byte & 15];
        digits.extend(
            nibbles
                .iter()
                .filter_map(|nibble| char::from_digit(u32::from(*nibble), 16)),
        );
        digits
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cut_at_a_character() {
        let text = format!("{}é", "a".repeat(GUEST_TEXT_BYTES_MAX - 1));
        assert_eq!(for_caller(&text).len(), GUEST_TEXT_BYTES_MAX - 1);
        assert_eq!(for_caller("é"), "é");
    }

    #[test]
    fn control_characters_are_removed_or_escaped() {
        assert_eq!(for_caller("a\r\n\u{1b}[31mb"), "a[31mb");
        assert_eq!(for_log("a\n\u{1b}b"), "a\\n\\u{1b}b");
        assert_eq!(violation(Some("x\ny"), "r\u{7}").to_string(), "xy r");
    }
}
