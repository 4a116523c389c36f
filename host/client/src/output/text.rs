//! Indents JSON, and escapes text for terminals.

use std::{borrow::Cow, fmt::Write};

use serde_json::value::RawValue;
use zeroize::Zeroizing;

/// Indents JSON. Numbers are not parsed, so that they keep all digits.
pub(super) fn indented(json: &RawValue) -> Zeroizing<String> {
    let mut writer = Writer::default();
    let mut rest = json.get().chars().peekable();
    while let Some(character) = rest.next() {
        if writer.is_in_text {
            writer.take_of_text(character);
        } else if !character.is_ascii_whitespace() {
            while rest.next_if(char::is_ascii_whitespace).is_some() {}
            let closes_at_once = matches!(rest.peek(), Some('}' | ']'));
            writer.take(character, closes_at_once);
        }
    }
    writer.text
}

#[derive(Default)]
struct Writer {
    text: Zeroizing<String>,
    depth: usize,
    is_in_text: bool,
    is_escaped: bool,
    is_empty: bool,
}

impl Writer {
    fn take_of_text(&mut self, character: char) {
        self.text.push(character);
        self.is_in_text = self.is_escaped || character != '"';
        self.is_escaped = !self.is_escaped && character == '\\';
    }

    fn take(&mut self, character: char, closes_at_once: bool) {
        match character {
            '{' | '[' => {
                self.text.push(character);
                self.depth += 1;
                self.is_empty = closes_at_once;
                if !closes_at_once {
                    self.new_line();
                }
            }
            '}' | ']' => {
                self.depth = self.depth.saturating_sub(1);
                if !std::mem::take(&mut self.is_empty) {
                    self.new_line();
                }
                self.text.push(character);
            }
            ',' => {
                self.text.push(character);
                self.new_line();
            }
            ':' => self.text.push_str(": "),
            _ => {
                self.is_in_text = character == '"';
                self.text.push(character);
            }
        }
    }

    fn new_line(&mut self) {
        self.text.push('\n');
        self.text.extend(std::iter::repeat_n("  ", self.depth));
    }
}

/// Escapes characters that could control a terminal, except newlines and tabs.
pub(crate) fn printable(text: &str) -> Cow<'_, str> {
    escaped(text, |escaped, character| {
        escaped.extend(character.escape_unicode());
    })
}

/// Escapes the same characters as [`printable`], in JSON. The JSON value is unchanged, because the characters only occur in
/// strings.
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
    matches!(character, '\n' | '\t') || !(character.is_control() || controls_direction(character))
}

/// Returns whether the character controls the text direction (Unicode Standard Annex #9).
fn controls_direction(character: char) -> bool {
    matches!(
        character,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indentation_matches_serde_json_and_keeps_numbers() {
        for json in [
            "1",
            "\"a\"",
            "[]",
            "{}",
            "[ ]",
            "[[],{},[{}]]",
            r#"{"a":1,"b":[1,2,{"c":null}],"d":{},"e":"x"}"#,
            "{ \"a\" : [ 1 , 2 ] , \"b\" : { } }",
            r#"{"a":"{[,:]} \" \\","b\\":"\\\"","é":"\u0001"}"#,
        ] {
            let raw: Box<RawValue> = serde_json::from_str(json).unwrap();
            let value: serde_json::Value = serde_json::from_str(json).unwrap();
            let expected = serde_json::to_string_pretty(&value).unwrap();
            assert_eq!(*indented(&raw), expected, "{json}");
        }
        let json = "[123456789012345678901234567890,1.10,1E400]";
        let raw: Box<RawValue> = serde_json::from_str(json).unwrap();
        let spread = indented(&raw);
        let compact: String = spread.split_whitespace().collect();
        assert_eq!(compact, json);
    }

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
