//! PEM (RFC 7468), with the text around it that people leave there.
//!
//! What is decoded may be a private key, so that every buffer on the way is zeroed when it is dropped.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use zeroize::Zeroizing;

/// One block between its two lines.
pub(super) struct PemBlock<'a> {
    /// What it says it is: `CERTIFICATE`.
    pub(super) label: &'a str,
    body: &'a str,
}

impl<'a> PemBlock<'a> {
    /// The blocks of a text, in its order. Whatever stands between them is passed over.
    pub(super) fn all(text: &'a str) -> impl Iterator<Item = PemBlock<'a>> {
        let mut rest = text;
        std::iter::from_fn(move || {
            let (block, after) = first_block(rest)?;
            rest = after;
            Some(block)
        })
    }

    /// Whether lines before the data say that it is encrypted (RFC 1421).
    pub(super) fn is_encrypted(&self) -> bool {
        self.body.contains("ENCRYPTED")
    }

    /// The bytes inside; none when they are not base64.
    pub(super) fn decode(&self) -> Option<Zeroizing<Vec<u8>>> {
        let mut digits = Zeroizing::new(Vec::with_capacity(self.body.len()));
        digits.extend(self.body.bytes().filter(|byte| !byte.is_ascii_whitespace()));
        let mut bytes = Zeroizing::new(vec![0; digits.len()]);
        let length = STANDARD.decode_slice(digits.as_slice(), &mut bytes).ok()?;
        bytes.truncate(length);
        Some(bytes)
    }
}

/// The first block, and the text behind it.
fn first_block(text: &str) -> Option<(PemBlock<'_>, &str)> {
    let (_, from_label) = text.split_once(BEGIN)?;
    let (label, from_body) = from_label.split_once(DASHES)?;
    let (body, from_end) = from_body.split_once(END)?;
    let after = from_end.strip_prefix(label)?.strip_prefix(DASHES)?;
    Some((PemBlock { label, body }, after))
}

const BEGIN: &str = "-----BEGIN ";
const END: &str = "-----END ";
const DASHES: &str = "-----";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_found_among_other_text() {
        let text = "subject=a\r\n-----BEGIN A-----\r\nAQ\r\nI=\r\n-----END A-----\r\nbetween\n\
                    -----BEGIN B C-----\nAw==\n-----END B C-----\ntrailing";
        let blocks: Vec<_> = PemBlock::all(text)
            .map(|block| (block.label, block.decode().unwrap().to_vec()))
            .collect();
        assert_eq!(blocks, [("A", vec![1, 2]), ("B C", vec![3])]);
    }

    #[test]
    fn a_block_without_its_own_end_is_none() {
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
    fn what_is_not_base64_is_not_decoded() {
        let block = PemBlock::all("-----BEGIN A-----\nAQ_=\n-----END A-----")
            .next()
            .unwrap();
        assert!(block.decode().is_none());
    }
}
