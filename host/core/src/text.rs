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

/// The maximum length of sanitized text.
pub const SANITIZED_CHARACTERS_MAX: usize = 200;
