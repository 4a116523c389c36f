//! Escapes text for terminals.

use std::{borrow::Cow, fmt::Write};

/// Escapes characters that could control a terminal, except newlines and tabs.
pub(crate) fn printable(text: &str) -> Cow<'_, str> {
    escaped(text, |escaped, character| {
        escaped.extend(character.escape_unicode());
    })
}

/// Escapes the same characters in JSON. The JSON value is unchanged, because such characters only occur in strings.
pub(super) fn printable_json(json: &str) -> Cow<'_, str> {
    escaped(json, |escaped, character| {
        // Writing to a string does not fail.
        let _ = write!(escaped, "\\u{:04x}", u32::from(character));
    })
}

fn escaped(text: &str, escape: impl Fn(&mut String, char)) -> Cow<'_, str> {
    if text.chars().all(is_harmless) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 8);
    for character in text.chars() {
        if is_harmless(character) {
            escaped.push(character);
        } else {
            escape(&mut escaped, character);
        }
    }
    Cow::Owned(escaped)
}

fn is_harmless(character: char) -> bool {
    matches!(character, '\n' | '\t') || !(character.is_control() || turns_text(character))
}

/// Whether the character controls the text direction (Unicode Standard Annex #9).
fn turns_text(character: char) -> bool {
    matches!(
        character,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terminal_control_characters_are_escaped() {
        for (text, expected) in [
            ("a é\n\tb", "a é\n\tb"),
            ("\u{1b}[31mred", "\\u{1b}[31mred"),
            ("a\rb\u{7}\u{9b}", "a\\u{d}b\\u{7}\\u{9b}"),
            ("\u{202e}gnp.exe", "\\u{202e}gnp.exe"),
        ] {
            assert_eq!(printable(text), expected);
        }
    }
    #[test]
    fn escaped_json_has_the_same_value() {
        let texts = [
            "a é\n\t\"\\",
            "\u{1b}\r\u{7f}\u{80}\u{9b}",
            "\u{61c}\u{202e}\u{2069}",
        ];
        for text in texts {
            let json = serde_json::to_string_pretty(&[text]).unwrap();
            let shown = printable_json(&json);
            assert!(shown.chars().all(is_harmless), "{shown:?}");
            let [read]: [String; 1] = serde_json::from_str(&shown).unwrap();
            assert_eq!(read, text);
        }
        assert_eq!(printable_json("[\"\u{202e}\"]"), "[\"\\u202e\"]");
    }
}
