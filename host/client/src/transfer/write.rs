//! Writes exports entry by entry.
//!
//! Parsers of YAML 1.1 and 1.2 read strings the same way: a string is only unquoted if it is unambiguous. Numbers are verbatim, so
//! parsers of YAML 1.1 read a number with an exponent as a string unless it has a point and a sign, as `1.0e+5` has.

use std::{
    fmt::Write as _,
    io::{self, Write},
};

use zeroize::Zeroizing;

use crate::output::printable_json;

use super::{
    entry::Format,
    node::{Node, Reason, Scalar},
};

/// Converts JSON to YAML with a trailing newline. Numbers keep all digits, and keys their order.
pub(crate) fn yaml(json: &str) -> Result<Zeroizing<String>, String> {
    let node = Node::from_json(json).map_err(|error| error.to_string())?;
    // The lines of a block scalar must be indented, even at the top level.
    let indent = usize::from(matches!(node, Node::Scalar(_)));
    let mut written = Zeroizing::new(Vec::new());
    write_yaml(&mut *written, &node, indent).map_err(|_| NOT_WRITTEN)?;
    written.push(b'\n');
    let written = String::from_utf8(std::mem::take(&mut *written)).map_err(|_| NOT_WRITTEN)?;
    Ok(Zeroizing::new(written))
}

/// Unreachable: writing to memory does not fail, and the output is UTF-8.
const NOT_WRITTEN: Reason = "can't be written as YAML";

/// Writes a list of credentials.
pub(crate) struct EntryWriter<W> {
    output: W,
    format: Format,
    entries: usize,
}

impl<W: Write> EntryWriter<W> {
    /// Writes the start of the list.
    pub(crate) fn begin(mut output: W, format: Format) -> io::Result<Self> {
        output.write_all(match format {
            Format::Json => b"{\"credentials\":[",
            Format::Yaml => b"credentials:",
        })?;
        Ok(Self {
            output,
            format,
            entries: 0,
        })
    }

    pub(crate) fn write(&mut self, entry: &Node) -> io::Result<()> {
        match self.format {
            Format::Json => {
                let separator = if self.entries == 0 { "\n" } else { ",\n" };
                self.output.write_all(separator.as_bytes())?;
                let json = entry.to_json().map_err(io::Error::other)?;
                let printable = Zeroizing::new(printable_json(json.expose()).into_owned());
                self.output.write_all(printable.as_bytes())?;
            }
            Format::Yaml => {
                self.output.write_all(b"\n- ")?;
                write_yaml(&mut self.output, entry, 1)?;
            }
        }
        self.entries += 1;
        Ok(())
    }

    /// Writes the end of the list, and returns the output.
    pub(crate) fn finish(mut self) -> io::Result<W> {
        self.output.write_all(match (self.format, self.entries) {
            (Format::Json, _) => b"\n]}\n",
            (Format::Yaml, 0) => b" []\n",
            (Format::Yaml, _) => b"\n",
        })?;
        self.output.flush()?;
        Ok(self.output)
    }

    pub(crate) fn output(&mut self) -> &mut W {
        &mut self.output
    }
}

/// Writes a node after the `-` or the key that precedes it, without a trailing newline.
fn write_yaml(output: &mut impl Write, node: &Node, indent: usize) -> io::Result<()> {
    match node {
        Node::Scalar(scalar) => write_scalar(output, scalar, indent),
        Node::List(nodes) if is_block(node, indent) => {
            for (index, node) in nodes.iter().enumerate() {
                if index > 0 {
                    break_line(output, indent)?;
                }
                output.write_all(b"- ")?;
                write_yaml(output, node, indent + 1)?;
            }
            Ok(())
        }
        Node::Mapping(fields) if is_block(node, indent) => {
            for (index, (key, node)) in fields.iter().enumerate() {
                if index > 0 {
                    break_line(output, indent)?;
                }
                write_key(output, key, indent)?;
                write_field(output, node, indent)?;
            }
            Ok(())
        }
        node => write_on_one_line(output, node),
    }
}

/// Returns whether each item or field of a node has its own line.
fn is_block(node: &Node, indent: usize) -> bool {
    let is_empty = match node {
        Node::Scalar(_) => return false,
        Node::List(nodes) => nodes.is_empty(),
        Node::Mapping(fields) => fields.is_empty(),
    };
    !is_empty && indent <= BLOCK_INDENT_MAX
}

/// Writes a node in flow style.
fn write_on_one_line(output: &mut impl Write, node: &Node) -> io::Result<()> {
    match node {
        Node::Scalar(scalar) if scalar.is_quoted => {
            output.write_all(single_line(&scalar.text).as_bytes())
        }
        Node::Scalar(scalar) => output.write_all(scalar.text.as_bytes()),
        Node::List(nodes) => {
            output.write_all(b"[")?;
            for node in nodes {
                write_on_one_line(output, node)?;
                output.write_all(b", ")?;
            }
            output.write_all(b"]")
        }
        Node::Mapping(fields) => {
            output.write_all(b"{")?;
            for (key, node) in fields {
                // With `?`, keys may have any length: see [`write_key`].
                write!(output, "? {} : ", *single_line(key))?;
                write_on_one_line(output, node)?;
                output.write_all(b", ")?;
            }
            output.write_all(b"}")
        }
    }
}

/// Writes a key. Long keys need a `?`, because parsers search for the colon only within 1,024 characters.
fn write_key(output: &mut impl Write, key: &str, indent: usize) -> io::Result<()> {
    let text = single_line(key);
    if text.chars().count() <= SIMPLE_KEY_CHARACTERS_MAX {
        return write!(output, "{}:", *text);
    }
    write!(output, "? {}", *text)?;
    break_line(output, indent)?;
    output.write_all(b":")
}

fn write_field(output: &mut impl Write, node: &Node, indent: usize) -> io::Result<()> {
    if is_block(node, indent + 1) {
        break_line(output, indent + 1)?;
    } else {
        output.write_all(b" ")?;
    }
    write_yaml(output, node, indent + 1)
}

fn write_scalar(output: &mut impl Write, scalar: &Scalar, indent: usize) -> io::Result<()> {
    let text = scalar.text.as_str();
    if !scalar.is_quoted {
        return output.write_all(text.as_bytes());
    }
    if !is_literal(text) {
        return output.write_all(single_line(text).as_bytes());
    }
    let (lines, indicator) = match text.strip_suffix('\n') {
        Some(lines) => (lines, "|"),
        None => (text, "|-"),
    };
    output.write_all(indicator.as_bytes())?;
    for line in lines.split('\n') {
        if line.is_empty() {
            output.write_all(b"\n")?;
        } else {
            break_line(output, indent)?;
            output.write_all(line.as_bytes())?;
        }
    }
    Ok(())
}

fn break_line(output: &mut impl Write, indent: usize) -> io::Result<()> {
    output.write_all(b"\n")?;
    for _ in 0..indent {
        output.write_all(INDENTATION)?;
    }
    Ok(())
}

/// Returns whether a text can be a literal block, such as a key or a certificate: several lines of printable ASCII that don't
/// start with a space, a first line that is not empty, and at most one trailing newline.
fn is_literal(text: &str) -> bool {
    let lines = text.strip_suffix('\n').unwrap_or(text);
    lines.contains('\n')
        && !lines.starts_with('\n')
        && !lines.ends_with('\n')
        && lines.split('\n').all(|line| {
            !line.starts_with(' ') && line.bytes().all(|byte| matches!(byte, b' '..=b'~'))
        })
}

/// Returns a text on one line, in double quotes unless it is safe without.
fn single_line(text: &str) -> Zeroizing<String> {
    if is_plain(text) {
        return Zeroizing::new(text.to_owned());
    }
    let mut quoted = Zeroizing::new(String::with_capacity(text.len() + 2));
    quoted.push('"');
    for character in text.chars() {
        match character {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            ' '..='~' => quoted.push(character),
            character => push_beyond_ascii(&mut quoted, character),
        }
    }
    quoted.push('"');
    quoted
}

/// Appends a character. Letters and digits of any script are not escaped. Everything else is escaped, because it may be invisible, a
/// line break in some parsers, or not printable by YAML's definition.
fn push_beyond_ascii(quoted: &mut String, character: char) {
    let code = u32::from(character);
    if character.is_alphanumeric() {
        quoted.push(character);
        return;
    }
    // Writing to a string does not fail.
    let _ = match code {
        0..=0xff => write!(quoted, "\\x{code:02x}"),
        0x100..=0xffff => write!(quoted, "\\u{code:04x}"),
        _ => write!(quoted, "\\U{code:08x}"),
    };
}

/// Returns whether a text is safe without quotes: it starts with a letter, a slash or an underscore; contains only letters,
/// digits, slashes, underscores, dots and hyphens; and has no special meaning in YAML 1.1 or 1.2.
fn is_plain(text: &str) -> bool {
    let is_word = text
        .starts_with(|first: char| first.is_ascii_alphabetic() || "/_".contains(first))
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"/_.-".contains(&byte));
    is_word && !WORDS.iter().any(|word| word.eq_ignore_ascii_case(text))
}

/// The words that parsers may read as a boolean or null, in any case.
const WORDS: [&str; 9] = ["true", "false", "yes", "no", "on", "off", "y", "n", "null"];

const INDENTATION: &[u8] = b"  ";

/// The deepest indentation of block style. Without a limit, the indentation of a large, deeply nested value could make an entry
/// longer than an importer accepts, and the whole export could not be imported.
const BLOCK_INDENT_MAX: usize = 8;

/// Well below the 1,024 characters that YAML allows.
const SIMPLE_KEY_CHARACTERS_MAX: usize = 512;

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;

    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;
    use crate::{
        output::is_harmless,
        transfer::{background_writer::INCOMPLETE_MARK, read::read_entries},
    };

    fn written(format: Format, values: &[Value]) -> String {
        let mut writer = EntryWriter::begin(Vec::new(), format).unwrap();
        for (index, value) in values.iter().enumerate() {
            let mut entry = json!({"name": format!("/{index}"), "type": "json", "value": value});
            if index % 2 == 1 {
                entry["metadata"] = value.clone();
            }
            let entry = Node::from_json(&entry.to_string()).unwrap();
            writer.write(&entry).unwrap();
        }
        String::from_utf8(writer.finish().unwrap()).unwrap()
    }

    fn read(format: Format, file: &str) -> Vec<Value> {
        let mut values = Vec::new();
        read_entries(file.as_bytes(), format, &mut |entry| {
            let credential = entry.unwrap().credential;
            let value: Value = serde_json::from_str(credential.value.expose()).unwrap();
            if let Some(metadata) = credential.metadata {
                assert_eq!(metadata, credential.value);
            }
            values.push(value);
            ControlFlow::Continue(())
        })
        .unwrap();
        values
    }

    #[test]
    fn yaml_is_human_readable() {
        let value = json!({
            "text": "plain", "word": "yes", "number": "12", "count": 12, "empty": "", "none": null,
            "key": "-----BEGIN-----\nabc\n\n-----END-----\n", "cut": "a\nb", "odd": " a\nb",
            "list": [[1, "x\ny"], {"a": 1, "b": []}, {}], "a: b": "#",
        });
        let expected = r##"credentials:
- name: /0
  type: json
  value:
    text: plain
    word: "yes"
    number: "12"
    count: 12
    empty: ""
    none: null
    key: |
      -----BEGIN-----
      abc

      -----END-----
    cut: |-
      a
      b
    odd: " a\nb"
    list:
      - - 1
        - |-
          x
          y
      - a: 1
        b: []
      - {}
    "a: b": "#"
"##;
        assert_eq!(written(Format::Yaml, &[value]), expected);
        assert_eq!(written(Format::Yaml, &[]), "credentials: []\n");
        assert_eq!(written(Format::Json, &[]), "{\"credentials\":[\n]}\n");
    }

    #[test]
    fn no_parser_accepts_an_incomplete_export() {
        for format in [Format::Json, Format::Yaml] {
            for count in 0..2 {
                let mut output = Vec::new();
                let mut writer = EntryWriter::begin(&mut output, format).unwrap();
                for _ in 0..count {
                    let entry = r#"{"name": "/a", "type": "value", "value": "line\nline"}"#;
                    writer.write(&Node::from_json(entry).unwrap()).unwrap();
                }
                writer
                    .output()
                    .write_all(INCOMPLETE_MARK.as_bytes())
                    .unwrap();
                let read =
                    read_entries(
                        output.as_slice(),
                        format,
                        &mut |_| ControlFlow::Continue(()),
                    );
                assert!(read.is_err());
            }
        }
    }

    #[test]
    fn long_and_unusual_keys_survive_a_round_trip() {
        let long = "k".repeat(1_500);
        let value = json!({
            long.as_str(): {"a": 1}, format!("{long} \u{1}").as_str(): [1], "": "", "<<": {"x": 1}, "null": null,
            "? a": "- b", "a\nb": "\u{85}\u{2028}\u{feff}\u{7f}\u{0}\u{10ffff}", "😀": "\u{301}é", "~": "~",
        });
        for format in [Format::Json, Format::Yaml] {
            let values = [value.clone(), value.clone()];
            assert_eq!(read(format, &written(format, &values)), values);
        }
    }

    #[test]
    fn long_and_deeply_nested_values_survive_a_round_trip() {
        let item = json!({"k".repeat(2_000): 1, "a\nb": ["\u{1}: '", {}, []]});
        let items = vec![item.clone(), json!(vec![0; 30_000])];
        let nested = (0..120).fold(json!(items), |inner, _| json!([inner]));
        for format in [Format::Json, Format::Yaml] {
            assert_eq!(
                read(format, &written(format, &[json!({"a": nested})])),
                [json!({"a": nested})]
            );
        }
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let text = prop_oneof![
            any::<String>(),
            "[ -~\n\t]{0,40}",
            "(a?[ #:-]?[|>\n]{0,2}){0,6}",
            "[-+.0-9eExo_:~]{0,8}",
        ];
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<i32>().prop_map(|number| Value::from(f64::from(number) / 4.0)),
            text.clone().prop_map(Value::from),
        ];
        let tree = leaf.prop_recursive(4, 24, 5, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::vec((text.clone(), inner), 0..4)
                    .prop_map(|fields| Value::Object(fields.into_iter().collect())),
            ]
        });
        tree.prop_map(|value| json!({ "value": value }))
    }

    proptest! {
        #[test]
        fn any_json_survives_a_round_trip(values in prop::collection::vec(any_json(), 1..4)) {
            for format in [Format::Json, Format::Yaml] {
                let file = written(format, &values);
                prop_assert_eq!(&read(format, &file), &values, "{}", file);
                prop_assert!(file.chars().all(is_harmless), "{}", file);
            }
        }
    }
}
