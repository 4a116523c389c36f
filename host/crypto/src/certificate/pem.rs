//! Reads and writes PEM (RFC 7468). Text around the blocks is ignored.
//!
//! Blocks may contain private keys, so decoded bytes are zeroized on drop.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use rsa::pkcs8::der::pem::{LineEnding, encode_string};
use zeroize::Zeroizing;

pub(super) struct PemBlock<'a> {
    /// The label, such as `CERTIFICATE`.
    pub(super) label: &'a str,
    body: &'a str,
    has_own_lines: bool,
}

impl<'a> PemBlock<'a> {
    /// Returns the blocks of a text, in order. Skips other text.
    pub(super) fn all(text: &'a str) -> impl Iterator<Item = PemBlock<'a>> {
        let mut rest = text;
        std::iter::from_fn(move || {
            let (block, after) = first_block(rest)?;
            rest = after;
            Some(block)
        })
    }

    /// Returns whether [`PemBlock::all`] finds all blocks of a text. It ends at the first malformed one, which other programs skip.
    pub(super) fn are_all_found(text: &str) -> bool {
        PemBlock::all(text).count() == text.matches(BEGIN).count()
    }

    /// Returns whether headers before the data declare it as encrypted (RFC 1421).
    pub(super) fn is_encrypted(&self) -> bool {
        self.body.contains("ENCRYPTED")
    }

    /// Returns whether every program reads the block: its first and last line contain nothing else, and all other lines are valid
    /// base64.
    ///
    /// OpenSSL, for example, skips a block whose first line is indented, and so may find another certificate than the host. It reads
    /// no certificate after a block that is not valid base64, whatever its label.
    pub(super) fn is_strict(&self) -> bool {
        let Some(lines) = self
            .body
            .strip_prefix("\r\n")
            .or(self.body.strip_prefix('\n'))
        else {
            return false;
        };
        let Some(lines) = lines.strip_suffix('\n') else {
            return false;
        };
        let is_base64 = |byte: u8| byte.is_ascii_alphanumeric() || b"+/=".contains(&byte);
        self.has_own_lines
            && lines.split('\n').all(|line| {
                let line = line.strip_suffix('\r').unwrap_or(line);
                !line.is_empty() && line.bytes().all(is_base64)
            })
            && self.decode().is_some()
    }

    /// Decodes the contents, or returns `None` if they are not base64.
    pub(super) fn decode(&self) -> Option<Zeroizing<Vec<u8>>> {
        let mut digits = Zeroizing::new(Vec::with_capacity(self.body.len()));
        digits.extend(self.body.bytes().filter(|byte| !byte.is_ascii_whitespace()));
        let mut bytes = Zeroizing::new(vec![0; digits.len()]);
        let length = STANDARD.decode_slice(digits.as_slice(), &mut bytes).ok()?;
        bytes.truncate(length);
        Some(bytes)
    }
}

/// Returns a block with lines of 64 characters that end with LF, or `None` if the label is malformed.
///
/// The text is allocated once: a reallocation would leave parts of a private key in the old buffer. The caller zeroizes a text with
/// a private key.
pub(super) fn block(label: &str, bytes: &[u8]) -> Option<String> {
    encode_string(label, LineEnding::LF, bytes).ok()
}

fn first_block(text: &str) -> Option<(PemBlock<'_>, &str)> {
    let (before, from_label) = text.split_once(BEGIN)?;
    let (label, from_body) = from_label.split_once(DASHES)?;
    let (body, from_end) = from_body.split_once(END)?;
    let after = from_end.strip_prefix(label)?.strip_prefix(DASHES)?;
    let is_line_end =
        |text: &str| text.is_empty() || text.starts_with('\n') || text.starts_with("\r\n");
    let block = PemBlock {
        label,
        body,
        has_own_lines: (before.is_empty() || before.ends_with('\n')) && is_line_end(after),
    };
    Some((block, after))
}

const BEGIN: &str = "-----BEGIN ";
const END: &str = "-----END ";
const DASHES: &str = "-----";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_found_in_other_text() {
        let text = "subject=a\r\n-----BEGIN A-----\r\nAQ\r\nI=\r\n-----END A-----\r\nbetween\n\
                    -----BEGIN B C-----\nAw==\n-----END B C-----\ntrailing";
        let blocks: Vec<_> = PemBlock::all(text)
            .map(|block| (block.label, block.decode().unwrap().to_vec()))
            .collect();
        assert_eq!(blocks, [("A", vec![1, 2]), ("B C", vec![3])]);
    }

    #[test]
    fn block_without_matching_end_is_ignored() {
        for text in [
            "",
            "AQI=",
            "-----BEGIN A-----\nAQI=\n",
            "-----BEGIN A-----\nAQI=\n-----END B-----\n",
            "-----BEGIN A",
        ] {
            assert!(PemBlock::all(text).next().is_none(), "{text}");
        }
    }

    #[test]
    fn block_is_strict_if_its_lines_contain_nothing_else() {
        let strict = "-----BEGIN A-----\nAQ\nI=\n-----END A-----";
        for (text, is_strict) in [
            (strict.to_owned(), true),
            (strict.replace('\n', "\r\n"), true),
            (format!("text\n{strict}\r\ntext"), true),
            (format!(" {strict}"), false),
            (format!("{strict} "), false),
            (strict.replace("AQ", " AQ"), false),
            (strict.replace("AQ", "AQ "), false),
            (strict.replace("AQ", "AQ\n"), false),
            (strict.replace("A-----\n", "A-----\n\n"), false),
            (strict.replace("A-----\n", "A-----"), false),
            (strict.replace("=\n", "="), false),
            (strict.replace('\n', "\r"), false),
        ] {
            let block = PemBlock::all(&text).next().unwrap();
            assert_eq!(block.is_strict(), is_strict, "{text:?}");
            assert_eq!(*block.decode().unwrap(), [1, 2], "{text:?}");
        }
    }

    #[test]
    fn written_block_is_strict_and_decodes_to_its_bytes() {
        for length in [0, 1, 47, 48, 49, 5_000] {
            let bytes = vec![7; length];
            let text = block("A B", &bytes).unwrap();
            let block = PemBlock::all(&text).next().unwrap();
            assert_eq!(*block.decode().unwrap(), bytes);
            assert!(block.is_strict() || length == 0);
            assert!(text.lines().all(|line| line.len() <= 64));
        }
    }

    #[test]
    fn malformed_base64_is_not_decoded() {
        let block = PemBlock::all("-----BEGIN A-----\nAQ_=\n-----END A-----")
            .next()
            .unwrap();
        assert!(block.decode().is_none());
    }
}
