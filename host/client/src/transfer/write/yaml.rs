//! Writing YAML that every reader understands alike, those of YAML 1.1 too: a text is only left unquoted when it can't be
//! taken for anything else.

use std::{
    fmt::Write as _,
    io::{self, Write},
};

use zeroize::Zeroizing;

use crate::transfer::node::{Node, Scalar};

/// Writes a node behind the indicator that introduces it, without a line break at its end.
pub(super) fn write(output: &mut impl Write, node: &Node, indent: usize) -> io::Result<()> {
    match node {
        Node::Scalar(scalar) => write_scalar(output, scalar, indent),
        Node::List(nodes) if nodes.is_empty() => output.write_all(b"[]"),
        Node::Mapping(members) if members.is_empty() => output.write_all(b"{}"),
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
        Node::Mapping(members) => {
            for (index, (key, node)) in members.iter().enumerate() {
                if index > 0 {
                    break_line(output, indent)?;
                }
                write_key(output, key, indent)?;
                write_member(output, node, indent)?;
            }
            Ok(())
        }
    }
}

/// A key that is long must be introduced, as readers look for its colon but 1,024 characters far.
fn write_key(output: &mut impl Write, key: &str, indent: usize) -> io::Result<()> {
    let text = single_line(key);
    if text.chars().count() <= SIMPLE_KEY_CHARACTERS_MAX {
        return write!(output, "{}:", *text);
    }
    write!(output, "? {}", *text)?;
    break_line(output, indent)?;
    output.write_all(b":")
}

fn write_member(output: &mut impl Write, node: &Node, indent: usize) -> io::Result<()> {
    let is_nested = match node {
        Node::Scalar(_) => false,
        Node::List(nodes) => !nodes.is_empty(),
        Node::Mapping(members) => !members.is_empty(),
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

/// Whether a text can stand as a block of lines, as keys and certificates do: lines of printable ASCII that don't begin
/// with a space, of which the first is not empty, and one line break at the end or none.
fn is_literal(text: &str) -> bool {
    let lines = text.strip_suffix('\n').unwrap_or(text);
    lines.contains('\n')
        && !lines.starts_with('\n')
        && !lines.ends_with('\n')
        && lines.split('\n').all(|line| {
            !line.starts_with(' ') && line.bytes().all(|byte| matches!(byte, b' '..=b'~'))
        })
}

/// A text on one line: as it is when that is safe, in double quotes otherwise.
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

/// Letters of any script stand for themselves; what is not seen, breaks lines in some reader, or is not printable in
/// YAML's sense is escaped.
fn push_beyond_ascii(quoted: &mut String, character: char) {
    let code = u32::from(character);
    if character.is_alphanumeric() {
        quoted.push(character);
        return;
    }
    // Writing to a text does not fail.
    let _ = match code {
        0..=0xff => write!(quoted, "\\x{code:02x}"),
        0x100..=0xffff => write!(quoted, "\\u{code:04x}"),
        _ => write!(quoted, "\\U{code:08x}"),
    };
}

/// Whether a text means itself without quotes: it begins with a letter, a slash or an underscore, has nothing but those,
/// digits, dots and hyphens, and is no word that YAML 1.1 or 1.2 takes for something else.
fn is_plain(text: &str) -> bool {
    let is_word = text
        .starts_with(|first: char| first.is_ascii_alphabetic() || "/_".contains(first))
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"/_.-".contains(&byte));
    is_word && !WORDS.iter().any(|word| word.eq_ignore_ascii_case(text))
}

/// What a reader may take for a truth value or for nothing, in any casing.
const WORDS: [&str; 9] = ["true", "false", "yes", "no", "on", "off", "y", "n", "null"];

const INDENTATION: &[u8] = b"  ";

/// Well below the 1,024 characters that YAML allows.
const SIMPLE_KEY_CHARACTERS_MAX: usize = 512;
