//! Writes YAML that parsers of YAML 1.1 and 1.2 read the same way: a string is only unquoted if it is unambiguous.

use std::{
    fmt::Write as _,
    io::{self, Write},
};

use zeroize::Zeroizing;

use crate::transfer::node::{Node, Scalar};

/// Writes a node after its indicator, without a trailing newline.
pub(super) fn write(output: &mut impl Write, node: &Node, indent: usize) -> io::Result<()> {
    match node {
        Node::Scalar(scalar) => write_scalar(output, scalar, indent),
        Node::List(nodes) if nodes.is_empty() => output.write_all(b"[]"),
        Node::Mapping(fields) if fields.is_empty() => output.write_all(b"{}"),
        Node::List(nodes) => {
            for (index, node) in nodes.iter().enumerate() {
                if index > 0 {
                    break_line(output, indent)?;
                }
                output.write_all(b"- ")?;
                write(output, node, indent + 1)?;
            }
            Ok(())
        }
        Node::Mapping(fields) => {
            for (index, (key, node)) in fields.iter().enumerate() {
                if index > 0 {
                    break_line(output, indent)?;
                }
                write_key(output, key, indent)?;
                write_field(output, node, indent)?;
            }
            Ok(())
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
    let is_nested = match node {
        Node::Scalar(_) => false,
        Node::List(nodes) => !nodes.is_empty(),
        Node::Mapping(fields) => !fields.is_empty(),
    };
    if is_nested {
        break_line(output, indent + 1)?;
    } else {
        output.write_all(b" ")?;
    }
    write(output, node, indent + 1)
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

/// Whether a text can be a literal block, such as a key or a certificate: several lines of printable ASCII that don't start with a
/// space, a first line that is not empty, and at most one trailing newline.
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

/// Appends a character. Letters and digits of any script are verbatim. Everything else is escaped, because it may be invisible, a
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

/// Whether a text is safe without quotes: it starts with a letter, a slash or an underscore, contains only those, digits, dots and
/// hyphens, and is not a word with a special meaning in YAML 1.1 or 1.2.
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

/// Well below the 1,024 characters that YAML allows.
const SIMPLE_KEY_CHARACTERS_MAX: usize = 512;
