//! Text from guests, other programs and callers, in logs and responses.

/// Returns whether a character could end a line, control a terminal, change the direction of text, or be invisible.
pub fn is_control_or_invisible(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            '\u{ad}'
                | '\u{61c}'
                | '\u{180e}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{feff}'
                | '\u{fff9}'..='\u{fffb}'
                | '\u{e0000}'..='\u{e007f}'
        )
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_and_invisible_characters_are_recognized() {
        let recognized = "\0\u{7f}\u{85}\u{ad}\u{61c}\u{180e}\u{200b}\u{200f}\u{2028}\u{202e}\u{2060}\u{2069}\u{206f}\u{feff}\
            \u{fff9}\u{fffb}\u{e0001}\u{e007f}";
        assert!(recognized.chars().all(is_control_or_invisible));
        let ordinary =
            "a ä\u{200a}\u{2010}\u{2027}\u{202f}\u{205f}\u{2070}\u{fefe}\u{fffd}\u{10348}";
        assert!(!ordinary.chars().any(is_control_or_invisible));
    }
}
