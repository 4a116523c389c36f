//! A little DER (X.690): checking elements and their contents, and writing what an issuer adds.
//!
//! The parser of certificates is lenient, as readers of found certificates must be. What an issuer signs and what is stored
//! must not be read in one way by the host and in another by those who verify it, so its bytes are first checked against
//! the encoding rules themselves. [`super::shape`] adds the structure, [`super::grammar`] the definitions of X.509.

use chrono::{NaiveDate, NaiveTime};

/// How closely bytes must follow DER.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Strictness {
    /// To the letter: bytes that a guest made.
    Exact,
    /// As certificates of other programs are found: default values may be written out, sets may be unsorted, named bits may
    /// end in zeros, and a `PrintableString` may hold other visible characters. Every reader reads these alike.
    AsFound,
}

/// Returns whether the bytes are exact DER elements from their beginning to their end. Contents of octet strings are not
/// checked.
///
/// The certificate plugin keeps nothing that this refuses: both definitions are tested by the same cases.
pub(super) fn is_der(bytes: &[u8]) -> bool {
    is_der_at_depth(bytes, Strictness::Exact, 0)
}

/// Returns whether one element, given by its tag and content, is DER all the way down.
pub(super) fn is_element(tag: u8, content: &[u8], strictness: Strictness) -> bool {
    is_element_at_depth(tag, content, strictness, 0)
}

/// An element out of its tag and its content.
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

/// A bit string of whole bytes.
pub(super) fn bit_string(bytes: &[u8]) -> Vec<u8> {
    element(BIT_STRING, &[&[0], bytes].concat())
}

/// The tag and the content of the first element, and what follows it.
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

/// The elements from the beginning of the bytes on, each whole, up to the first that is none.
pub(super) fn elements(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let (_, _, after) = split_element(rest)?;
        let element = rest.get(..rest.len() - after.len());
        rest = after;
        element
    })
}

/// A length of several bytes, if no shorter form could say it.
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

/// What a primitive element holds, as far as its tag says.
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

/// An integer that is not negative.
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

/// A bit string of whole bytes: a key or a signature.
pub(super) fn is_whole_bytes(content: &[u8], _: Strictness) -> bool {
    matches!(content, [0, _, ..])
}

/// A bit string whose bits have names: at least one is set, and the last one is the last that is (X.690, section 11.2.2).
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

/// Octets, at least one.
pub(super) fn is_filled(content: &[u8], _: Strictness) -> bool {
    !content.is_empty()
}

pub(super) fn is_null(content: &[u8], _: Strictness) -> bool {
    content.is_empty()
}

/// Arcs in their shortest form. Those of a guest must also fit into 32 bits: a reader with less room takes a larger one for
/// another number.
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

/// The texts of alternative names. A guest's have no control characters, at which some readers end a name.
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

/// Characters of so many bytes each. Halves of surrogate pairs are none.
fn are_characters<const BYTES: usize>(content: &[u8]) -> bool {
    let (characters, rest) = content.as_chunks::<BYTES>();
    rest.is_empty() && characters.iter().all(|bytes| character(bytes).is_some())
}

/// The character that so many bytes are, of four at most.
pub(super) fn character(bytes: &[u8]) -> Option<char> {
    let number = bytes
        .iter()
        .fold(0_u32, |number, byte| (number << 8) | u32::from(*byte));
    char::from_u32(number)
}

/// `YYMMDDhhmmssZ`.
pub(super) fn is_utc_time(content: &[u8], _: Strictness) -> bool {
    is_time(content, 2)
}

/// `YYYYMMDDhhmmssZ`.
pub(super) fn is_generalized_time(content: &[u8], _: Strictness) -> bool {
    is_time(content, 4)
}

/// A second that there is, in universal time, with a year of so many digits.
fn is_time(content: &[u8], year_digits: usize) -> bool {
    let Some((year, rest)) = content.split_at_checked(year_digits) else {
        return false;
    };
    let Some((year, [pairs @ .., b'Z'])) = number(year).zip(Some(rest)) else {
        return false;
    };
    let (pairs, rest) = pairs.as_chunks::<2>();
    let numbers: Option<Vec<u32>> = pairs.iter().map(|pair| number(pair)).collect();
    // Two digits name a year from 1950 to 2049; in which century is of no matter, as neither 1900 nor 2100 is among them.
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

/// The bits of a tag that tell its class; none is set in a universal one.
const CLASS: u8 = 0xc0;

/// The bit of a tag that says that elements are inside.
const CONSTRUCTED: u8 = 0x20;

/// The bits of a tag that say that more of it follows.
const HIGH_TAG: u8 = 0x1f;

/// From here on a length byte counts the bytes of the length.
const LONG_LENGTH: usize = 0x80;

/// From here on the first octet of an integer makes it negative.
pub(super) const NEGATIVE: u8 = 0x80;

/// From here on a byte of an arc says that another one follows.
const MORE_OF_ARC: u8 = 0x80;

/// The characters that a `PrintableString` may have in addition to letters and digits (X.680, section 41.4).
const PRINTABLE_PUNCTUATION: &[u8] = b" '()+,-./:=?";

const LENGTH_BYTES_MAX: usize = 4;

/// More than any certificate needs, and little enough for any stack.
const DEPTH_MAX: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_written_with_the_shortest_length() {
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

    /// The cases that test both definitions of DER.
    const CASES: &str = include_str!("../../tests/certificates/der_cases.txt");

    #[test]
    fn only_the_one_form_of_each_element_is_der_for_an_issuer() {
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
    fn nesting_without_end_is_refused() {
        let nested = (0..200).fold(Vec::new(), |inner, _| element(SEQUENCE, &inner));
        assert!(!is_der(&nested));
    }
}
