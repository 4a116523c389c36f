//! What a terminal may be sent.

use std::borrow::Cow;

/// The text with everything escaped by which it could do more to a terminal than be read. Line ends and tabs stay.
pub(crate) fn printable(text: &str) -> Cow<'_, str> {
    let is_harmless = |character: char| {
        matches!(character, '\n' | '\t') || !(character.is_control() || turns_text(character))
    };
    if text.chars().all(is_harmless) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 8);
    for character in text.chars() {
        if is_harmless(character) {
            escaped.push(character);
        } else {
            escaped.extend(character.escape_unicode());
        }
    }
    Cow::Owned(escaped)
}

/// Whether it makes what follows be read in another direction (Unicode Standard Annex #9).
fn turns_text(character: char) -> bool {
    matches!(character, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_steer_a_terminal_is_escaped() {
        for (text, expected) in [
            ("a é\n\tb", "a é\n\tb"),
            ("\u{1b}[31mred", "\\u{1b}[31mred"),
            ("a\rb\u{7}\u{9b}", "a\\u{d}b\\u{7}\\u{9b}"),
            ("\u{202e}gnp.exe", "\\u{202e}gnp.exe"),
        ] {
            assert_eq!(printable(text), expected);
        }
    }
}
