//! Indents JSON.

use serde_json::value::RawValue;
use zeroize::Zeroizing;

/// Indents JSON. Numbers are not parsed, so that they keep all digits.
pub(super) fn pretty(json: &RawValue) -> Zeroizing<String> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_equals_a_json_librarys_but_numbers_stay_verbatim() {
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
            assert_eq!(*pretty(&raw), expected, "{json}");
        }
        let json = "[123456789012345678901234567890,1.10,1E400]";
        let raw: Box<RawValue> = serde_json::from_str(json).unwrap();
        let spread = pretty(&raw);
        let compact: String = spread.split_whitespace().collect();
        assert_eq!(compact, json);
    }
}
