//! Checks that bytes are DER at every level.
//!
//! Kept parts of certificates are not re-encoded, and CAs sign only DER. This check must reject everything that the host's check
//! rejects, so that the caller receives an error. Both are tested with the same cases.

use der::asn1::{AnyRef, GeneralizedTime, PrintableStringRef, UtcTime};

/// Returns whether the bytes are a sequence of DER elements: definite and shortest lengths, low tags, and the contents of each
/// type in canonical form (X.690). The contents of octet strings are not checked.
pub fn is_der(bytes: &[u8]) -> bool {
    is_der_at_depth(bytes, 0)
}

fn is_der_at_depth(mut bytes: &[u8], depth: usize) -> bool {
    if depth > DEPTH_MAX {
        return false;
    }
    while !bytes.is_empty() {
        let Some((tag, content, rest)) = split_element(bytes) else {
            return false;
        };
        let is_well_formed = if tag & CONSTRUCTED == 0 {
            is_primitive(tag, content)
        } else {
            let is_universal = tag & CLASS == 0;
            (!is_universal || matches!(tag, SEQUENCE | SET)) && is_der_at_depth(content, depth + 1)
        };
        if !is_well_formed {
            return false;
        }
        bytes = rest;
    }
    true
}

/// Splits the bytes into the tag and the content of the first element, and the rest.
fn split_element(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&[tag, first], rest) = bytes.split_first_chunk()?;
    if tag & HIGH_TAG == HIGH_TAG {
        return None;
    }
    let first = usize::from(first);
    let (length, rest) = if first < LONG_LENGTH {
        (first, rest)
    } else {
        let (digits, rest) = rest.split_at_checked(first - LONG_LENGTH)?;
        (long_length(digits)?, rest)
    };
    let (content, rest) = rest.split_at_checked(length)?;
    Some((tag, content, rest))
}

/// Decodes a length of several bytes, or returns `None` if there is a shorter form.
fn long_length(digits: &[u8]) -> Option<usize> {
    if digits.is_empty() || digits.len() > LENGTH_BYTES_MAX || digits.first() == Some(&0) {
        return None;
    }
    let length = digits
        .iter()
        .fold(0, |length, digit| (length << 8) | usize::from(*digit));
    (length >= LONG_LENGTH).then_some(length)
}

fn is_primitive(tag: u8, content: &[u8]) -> bool {
    match tag {
        END_OF_CONTENTS | PRIMITIVE_SEQUENCE | PRIMITIVE_SET => false,
        BOOLEAN => matches!(content, [0x00 | 0xff]),
        INTEGER | ENUMERATED => match content {
            [] | [0x00, 0x00..=0x7f, ..] | [0xff, 0x80..=0xff, ..] => false,
            [_, ..] => true,
        },
        BIT_STRING => match content {
            [0, ..] => true,
            [unused @ 1..=7, .., last] => last.trailing_zeros() >= u32::from(*unused),
            _ => false,
        },
        NULL => content.is_empty(),
        OBJECT_IDENTIFIER => is_object_identifier(content),
        UTF8_STRING => core::str::from_utf8(content).is_ok(),
        NUMERIC_STRING => content
            .iter()
            .all(|byte| matches!(byte, b'0'..=b'9' | b' ')),
        PRINTABLE_STRING => PrintableStringRef::new(content).is_ok(),
        IA5_STRING => content.is_ascii(),
        VISIBLE_STRING => content.iter().all(|byte| matches!(byte, b' '..=b'~')),
        UNIVERSAL_STRING => are_characters::<4>(content),
        BMP_STRING => are_characters::<2>(content),
        UTC_TIME => {
            any(der::Tag::UtcTime, content).is_some_and(|time| time.decode_as::<UtcTime>().is_ok())
        }
        GENERALIZED_TIME => any(der::Tag::GeneralizedTime, content)
            .is_some_and(|time| time.decode_as::<GeneralizedTime>().is_ok()),
        _ => true,
    }
}

fn any(tag: der::Tag, content: &[u8]) -> Option<AnyRef<'_>> {
    AnyRef::new(tag, content).ok()
}

/// Checks that arcs have the shortest form and at most 32 bits.
fn is_object_identifier(content: &[u8]) -> bool {
    let ends = content.last().is_some_and(|last| *last < MORE_OF_ARC);
    ends && content
        .split_inclusive(|byte| *byte < MORE_OF_ARC)
        .all(|arc| match arc {
            [MORE_OF_ARC, ..] => false,
            [first, _, _, _, _] => *first <= MORE_OF_ARC | 0x0f,
            arc => arc.len() < 5,
        })
}

/// Checks for characters of `BYTES` bytes each. Surrogates are not allowed.
fn are_characters<const BYTES: usize>(content: &[u8]) -> bool {
    let (characters, rest) = content.as_chunks::<BYTES>();
    rest.is_empty()
        && characters.iter().all(|bytes| {
            let number = bytes
                .iter()
                .fold(0_u32, |number, byte| (number << 8) | u32::from(*byte));
            char::from_u32(number).is_some()
        })
}

const END_OF_CONTENTS: u8 = 0x00;
const BOOLEAN: u8 = 0x01;
const INTEGER: u8 = 0x02;
const BIT_STRING: u8 = 0x03;
const NULL: u8 = 0x05;
const OBJECT_IDENTIFIER: u8 = 0x06;
const ENUMERATED: u8 = 0x0a;
const UTF8_STRING: u8 = 0x0c;
const PRIMITIVE_SEQUENCE: u8 = 0x10;
const PRIMITIVE_SET: u8 = 0x11;
const NUMERIC_STRING: u8 = 0x12;
const PRINTABLE_STRING: u8 = 0x13;
const IA5_STRING: u8 = 0x16;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;
const VISIBLE_STRING: u8 = 0x1a;
const UNIVERSAL_STRING: u8 = 0x1c;
const BMP_STRING: u8 = 0x1e;
const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;

/// The class bits of a tag. In universal tags, all of them are zero.
const CLASS: u8 = 0xc0;

/// The bit of a byte in an arc that is set if another byte follows.
const MORE_OF_ARC: u8 = 0x80;

/// The bit of a tag for constructed elements.
const CONSTRUCTED: u8 = 0x20;

/// The bits of a tag that are set if the tag has several bytes.
const HIGH_TAG: u8 = 0x1f;

/// From this value on, a length byte is the number of bytes of the length.
const LONG_LENGTH: usize = 0x80;

const LENGTH_BYTES_MAX: usize = 4;

/// More than any part of a certificate needs, and less than the host allows for a whole body.
const DEPTH_MAX: usize = 24;

#[cfg(test)]
mod tests {
    use super::*;

    /// The cases for both implementations.
    const CASES: &str = include_str!("../../../host/crypto/tests/certificates/der_cases.txt");

    #[test]
    fn only_canonical_elements_are_der() {
        for case in CASES.lines().filter(|line| !line.starts_with('#')) {
            let (digits, expected) = case.split_once(' ').unwrap();
            let bytes: Vec<u8> = (0..digits.len())
                .step_by(2)
                .map(|at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap())
                .collect();
            assert_eq!(is_der(&bytes), expected == "der", "{digits}");
        }
    }

    #[test]
    fn deep_nesting_is_rejected() {
        let nested = (0..40_u8).fold(Vec::new(), |inner, _| {
            let length = u8::try_from(inner.len()).unwrap();
            [&[0x30, length][..], &inner].concat()
        });
        assert!(!is_der(&nested));
    }
}
