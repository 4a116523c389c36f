//! DER (X.690): checks elements and their contents, and encodes the parts that an issuer adds.
//!
//! The certificate parser is lenient. But the host and other programs must read signed and stored certificates in the same way, so
//! their bytes are first checked against the encoding rules. [`super::shape`] adds the structure, [`super::grammar`] the
//! definitions of X.509.

use chrono::{NaiveDate, NaiveTime};

/// The strictness of a DER check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Strictness {
    /// Allows no deviation. For bytes from a guest.
    Exact,
    /// Allows deviations found in certificates from other programs: encoded default values, unsorted sets, trailing zeros in
    /// named bits, and other visible characters in a `PrintableString`. All programs read these in the same way.
    AsFound,
}

/// Returns whether the bytes are a sequence of exact DER elements. The contents of octet strings are not checked.
///
/// The certificate plugin has its own implementation, which must reject all bytes that this function rejects. Both are tested
/// with the same cases.
pub(super) fn is_der(bytes: &[u8]) -> bool {
    is_der_at_depth(bytes, Strictness::Exact, 0)
}

/// Returns whether an element, given by its tag and content, is DER at every level.
pub(super) fn is_element(tag: u8, content: &[u8], strictness: Strictness) -> bool {
    is_element_at_depth(tag, content, strictness, 0)
}

/// Encodes an element.
pub(super) fn element(tag: u8, content: &[u8]) -> Vec<u8> {
    let mut bytes = vec![tag];
    if content.len() < LONG_LENGTH {
        bytes.extend(u8::try_from(content.len()));
    } else {
        let length: Vec<u8> = content
            .len()
            .to_be_bytes()
            .into_iter()
            .skip_while(|byte| *byte == 0)
            .collect();
        bytes.extend(u8::try_from(LONG_LENGTH + length.len()));
        bytes.extend(length);
    }
    bytes.extend(content);
    bytes
}

/// Encodes a bit string of whole bytes.
pub(super) fn bit_string(bytes: &[u8]) -> Vec<u8> {
    element(BIT_STRING, &[&[0], bytes].concat())
}

/// Splits the bytes into the tag and the content of the first element, and the rest.
pub(super) fn split_element(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
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

/// Returns the encoded elements, up to the first malformed one.
pub(super) fn elements(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let (_, _, after) = split_element(rest)?;
        let element = rest.get(..rest.len() - after.len());
        rest = after;
        element
    })
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

fn is_der_at_depth(mut bytes: &[u8], strictness: Strictness, depth: usize) -> bool {
    while !bytes.is_empty() {
        let Some((tag, content, rest)) = split_element(bytes) else {
            return false;
        };
        if !is_element_at_depth(tag, content, strictness, depth) {
            return false;
        }
        bytes = rest;
    }
    true
}

fn is_element_at_depth(tag: u8, content: &[u8], strictness: Strictness, depth: usize) -> bool {
    if tag & CONSTRUCTED == 0 {
        return is_primitive(tag, content, strictness);
    }
    let is_universal = tag & CLASS == 0;
    (!is_universal || matches!(tag, SEQUENCE | SET))
        && depth < DEPTH_MAX
        && is_der_at_depth(content, strictness, depth + 1)
}

/// Checks the content of a primitive element. Allows any content for unknown tags.
fn is_primitive(tag: u8, content: &[u8], strictness: Strictness) -> bool {
    match tag {
        END_OF_CONTENTS | PRIMITIVE_SEQUENCE | PRIMITIVE_SET => false,
        BOOLEAN => is_boolean(content, strictness),
        INTEGER | ENUMERATED => is_integer(content, strictness),
        BIT_STRING => is_bit_string(content, strictness),
        NULL => is_null(content, strictness),
        OBJECT_IDENTIFIER => is_object_identifier(content, strictness),
        UTF8_STRING => is_utf8(content, strictness),
        NUMERIC_STRING => content
            .iter()
            .all(|byte| matches!(byte, b'0'..=b'9' | b' ')),
        PRINTABLE_STRING => is_printable(content, strictness),
        IA5_STRING => is_ascii(content, strictness),
        VISIBLE_STRING => is_visible(content, strictness),
        UNIVERSAL_STRING => are_characters::<4>(content),
        BMP_STRING => are_characters::<2>(content),
        UTC_TIME => is_utc_time(content, strictness),
        GENERALIZED_TIME => is_generalized_time(content, strictness),
        _ => true,
    }
}

pub(super) fn is_boolean(content: &[u8], _: Strictness) -> bool {
    matches!(content, [0x00 | 0xff])
}

pub(super) fn is_integer(content: &[u8], _: Strictness) -> bool {
    !matches!(
        content,
        [] | [0x00, 0x00..=0x7f, ..] | [0xff, 0x80..=0xff, ..]
    )
}

/// Checks for an integer that is not negative.
pub(super) fn is_unsigned(content: &[u8], strictness: Strictness) -> bool {
    is_integer(content, strictness) && content.first().is_some_and(|first| *first < NEGATIVE)
}

pub(super) fn is_bit_string(content: &[u8], _: Strictness) -> bool {
    match content {
        [0, ..] => true,
        [unused @ 1..=7, .., last] => last.trailing_zeros() >= u32::from(*unused),
        _ => false,
    }
}

/// Checks for a bit string of whole bytes: a key or a signature.
pub(super) fn is_whole_bytes(content: &[u8], _: Strictness) -> bool {
    matches!(content, [0, _, ..])
}

/// Checks for a bit string with named bits: at least one bit is set, and there are no trailing zeros (X.690, section 11.2.2).
pub(super) fn is_named_bits(content: &[u8], strictness: Strictness) -> bool {
    if !is_bit_string(content, strictness) {
        return false;
    }
    match (strictness, content) {
        (Strictness::AsFound, _) => true,
        (Strictness::Exact, [unused, .., last]) => last.trailing_zeros() == u32::from(*unused),
        (Strictness::Exact, _) => false,
    }
}

pub(super) fn is_octets(_: &[u8], _: Strictness) -> bool {
    true
}

/// Checks for at least one octet.
pub(super) fn is_filled(content: &[u8], _: Strictness) -> bool {
    !content.is_empty()
}

pub(super) fn is_null(content: &[u8], _: Strictness) -> bool {
    content.is_empty()
}

/// Checks that arcs have the shortest form. Arcs from a guest must also fit into 32 bits, because some programs could truncate
/// larger arcs.
pub(super) fn is_object_identifier(content: &[u8], strictness: Strictness) -> bool {
    let Some(last) = content.last() else {
        return false;
    };
    *last < MORE_OF_ARC
        && content
            .split_inclusive(|byte| *byte < MORE_OF_ARC)
            .all(|arc| {
                arc.first() != Some(&MORE_OF_ARC)
                    && (strictness == Strictness::AsFound || is_arc_of_32_bits(arc))
            })
}

fn is_arc_of_32_bits(arc: &[u8]) -> bool {
    match arc {
        [first, _, _, _, _] => *first <= MORE_OF_ARC | 0x0f,
        arc => arc.len() < 5,
    }
}

pub(super) fn is_utf8(content: &[u8], _: Strictness) -> bool {
    std::str::from_utf8(content).is_ok()
}

pub(super) fn is_ascii(content: &[u8], _: Strictness) -> bool {
    content.is_ascii()
}

pub(super) fn is_visible(content: &[u8], _: Strictness) -> bool {
    content.iter().all(|byte| matches!(byte, b' '..=b'~'))
}

/// Checks the text of an alternative name. Names from a guest must not contain control characters, at which some programs truncate
/// names.
pub(super) fn is_name_text(content: &[u8], strictness: Strictness) -> bool {
    match strictness {
        Strictness::Exact => is_visible(content, strictness),
        Strictness::AsFound => is_ascii(content, strictness),
    }
}

fn is_printable(content: &[u8], strictness: Strictness) -> bool {
    match strictness {
        Strictness::Exact => content
            .iter()
            .all(|byte| byte.is_ascii_alphanumeric() || PRINTABLE_PUNCTUATION.contains(byte)),
        Strictness::AsFound => is_visible(content, strictness),
    }
}

/// Checks for characters of `BYTES` bytes each. Surrogates are not allowed.
fn are_characters<const BYTES: usize>(content: &[u8]) -> bool {
    let (characters, rest) = content.as_chunks::<BYTES>();
    rest.is_empty() && characters.iter().all(|bytes| character(bytes).is_some())
}

/// Decodes a character of at most four bytes.
pub(super) fn character(bytes: &[u8]) -> Option<char> {
    let number = bytes
        .iter()
        .fold(0_u32, |number, byte| (number << 8) | u32::from(*byte));
    char::from_u32(number)
}

/// Returns whether this is a time of the form `YYMMDDhhmmssZ`.
pub(super) fn is_utc_time(content: &[u8], _: Strictness) -> bool {
    is_time(content, 2)
}

/// Returns whether this is a time of the form `YYYYMMDDhhmmssZ`.
pub(super) fn is_generalized_time(content: &[u8], _: Strictness) -> bool {
    is_time(content, 4)
}

/// Checks for a valid date and time in UTC whose year has this number of digits.
fn is_time(content: &[u8], year_digits: usize) -> bool {
    let Some((year, rest)) = content.split_at_checked(year_digits) else {
        return false;
    };
    let Some((year, [pairs @ .., b'Z'])) = number(year).zip(Some(rest)) else {
        return false;
    };
    let (pairs, rest) = pairs.as_chunks::<2>();
    let numbers: Option<Vec<u32>> = pairs.iter().map(|pair| number(pair)).collect();
    // Two digits are a year from 1950 to 2049. The century does not affect leap years in that range.
    let year = if year_digits == 2 { 2_000 + year } else { year };
    match (numbers.as_deref(), rest) {
        (Some(&[month, day, hour, minute, second]), []) => {
            i32::try_from(year)
                .is_ok_and(|year| NaiveDate::from_ymd_opt(year, month, day).is_some())
                && NaiveTime::from_hms_opt(hour, minute, second).is_some()
        }
        _ => false,
    }
}

fn number(digits: &[u8]) -> Option<u32> {
    digits.iter().try_fold(0_u32, |number, digit| {
        let digit = char::from(*digit).to_digit(10)?;
        Some(number * 10 + digit)
    })
}

const END_OF_CONTENTS: u8 = 0x00;
pub(super) const BOOLEAN: u8 = 0x01;
pub(super) const INTEGER: u8 = 0x02;
pub(super) const BIT_STRING: u8 = 0x03;
pub(super) const OCTET_STRING: u8 = 0x04;
pub(super) const NULL: u8 = 0x05;
pub(super) const OBJECT_IDENTIFIER: u8 = 0x06;
const ENUMERATED: u8 = 0x0a;
pub(super) const UTF8_STRING: u8 = 0x0c;
const PRIMITIVE_SEQUENCE: u8 = 0x10;
const PRIMITIVE_SET: u8 = 0x11;
pub(super) const NUMERIC_STRING: u8 = 0x12;
pub(super) const PRINTABLE_STRING: u8 = 0x13;
pub(super) const TELETEX_STRING: u8 = 0x14;
pub(super) const IA5_STRING: u8 = 0x16;
pub(super) const UTC_TIME: u8 = 0x17;
pub(super) const GENERALIZED_TIME: u8 = 0x18;
pub(super) const VISIBLE_STRING: u8 = 0x1a;
pub(super) const UNIVERSAL_STRING: u8 = 0x1c;
pub(super) const BMP_STRING: u8 = 0x1e;
pub(super) const SEQUENCE: u8 = 0x30;
pub(super) const SET: u8 = 0x31;

/// The class bits of a tag. They are 0 in universal tags.
const CLASS: u8 = 0xc0;

/// The bit of a tag for constructed elements.
const CONSTRUCTED: u8 = 0x20;

/// The bits that are all set in the first byte of a multi-byte tag.
const HIGH_TAG: u8 = 0x1f;

/// Lengths from this value on have the long form: a byte with this value plus the number of length bytes, then these bytes.
const LONG_LENGTH: usize = 0x80;

/// An integer is negative if its first octet is at least this value.
pub(super) const NEGATIVE: u8 = 0x80;

/// The bit that is set in every byte of an arc except the last.
const MORE_OF_ARC: u8 = 0x80;

/// The punctuation in a `PrintableString` (X.680, section 41.4).
const PRINTABLE_PUNCTUATION: &[u8] = b" '()+,-./:=?";

const LENGTH_BYTES_MAX: usize = 4;

/// The maximum nesting depth: more than any certificate needs, and safe for the stack.
const DEPTH_MAX: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_encoded_with_the_shortest_length() {
        for (bytes, head) in [
            (0, &[0x04, 0x00][..]),
            (127, &[0x04, 0x7f]),
            (128, &[0x04, 0x81, 0x80]),
            (256, &[0x04, 0x82, 0x01, 0x00]),
        ] {
            let written = element(OCTET_STRING, &vec![0; bytes]);
            assert!(written.starts_with(head) && written.len() == head.len() + bytes);
            assert!(is_der(&written));
        }
    }

    /// The test cases, shared with the certificate plugin.
    const CASES: &str = include_str!("../../tests/certificates/der_cases.txt");

    #[test]
    fn only_canonical_elements_are_der_for_an_issuer() {
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
        let nested = (0..200).fold(Vec::new(), |inner, _| element(SEQUENCE, &inner));
        assert!(!is_der(&nested));
    }
}
