//! DER (X.690): checks elements and their contents, and encodes elements.
//!
//! Parsers of certificates are lenient. But the host and other programs must read signed and stored certificates in the same way,
//! so their bytes are first checked against the encoding rules. The certificate plugin uses the same checks, so that it keeps only
//! parts that the host signs.

use time::{Date, Month, Time};

use tag::{
    BIT_STRING, BMP_STRING, BOOLEAN, END_OF_CONTENTS, ENUMERATED, GENERALIZED_TIME, IA5_STRING,
    INTEGER, NULL, NUMERIC_STRING, OBJECT_IDENTIFIER, PRIMITIVE_SEQUENCE, PRIMITIVE_SET,
    PRINTABLE_STRING, SEQUENCE, SET, UNIVERSAL_STRING, UTC_TIME, UTF8_STRING, VISIBLE_STRING,
};

/// The strictness of a DER check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strictness {
    /// Allows no deviation. For bytes from a guest.
    Exact,
    /// Allows deviations found in certificates from other programs: encoded default values, unsorted sets, trailing zeros in
    /// named bits, and other visible characters in a `PrintableString`. All programs read these in the same way.
    AsFound,
}

/// Returns whether the bytes are a sequence of exact DER elements, with at most this many levels below them. The contents of octet
/// strings are not checked.
pub fn is_der(bytes: &[u8], levels_max: usize) -> bool {
    are_elements(bytes, Strictness::Exact, levels_max)
}

/// Returns whether an element, given by its tag and content, is DER at every level.
pub fn is_element(tag: u8, content: &[u8], strictness: Strictness) -> bool {
    is_element_within(tag, content, strictness, LEVELS_MAX)
}

/// Encodes an element.
pub fn element(tag: u8, content: &[u8]) -> Vec<u8> {
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
pub fn bit_string(bytes: &[u8]) -> Vec<u8> {
    element(BIT_STRING, &[&[0], bytes].concat())
}

/// Splits the bytes into the tag and the content of the first element, and the rest.
pub fn split_element(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
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
pub fn elements(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
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

fn are_elements(mut bytes: &[u8], strictness: Strictness, levels: usize) -> bool {
    while !bytes.is_empty() {
        let Some((tag, content, rest)) = split_element(bytes) else {
            return false;
        };
        if !is_element_within(tag, content, strictness, levels) {
            return false;
        }
        bytes = rest;
    }
    true
}

fn is_element_within(tag: u8, content: &[u8], strictness: Strictness, levels: usize) -> bool {
    if tag & CONSTRUCTED == 0 {
        return is_primitive(tag, content, strictness);
    }
    let is_universal = tag & CLASS == 0;
    (!is_universal || matches!(tag, SEQUENCE | SET))
        && levels > 0
        && are_elements(content, strictness, levels - 1)
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

/// Checks for a boolean.
pub fn is_boolean(content: &[u8], _: Strictness) -> bool {
    matches!(content, [0x00 | 0xff])
}

/// Checks for an integer in the shortest form.
pub fn is_integer(content: &[u8], _: Strictness) -> bool {
    !matches!(
        content,
        [] | [0x00, 0x00..=0x7f, ..] | [0xff, 0x80..=0xff, ..]
    )
}

/// Checks for an integer that is not negative.
pub fn is_unsigned(content: &[u8], strictness: Strictness) -> bool {
    is_integer(content, strictness) && content.first().is_some_and(|first| *first < NEGATIVE)
}

/// Checks for a bit string whose unused bits are 0.
pub fn is_bit_string(content: &[u8], _: Strictness) -> bool {
    match content {
        [0, ..] => true,
        [unused @ 1..=7, .., last] => last.trailing_zeros() >= u32::from(*unused),
        _ => false,
    }
}

/// Checks for a bit string of whole bytes: a key or a signature.
pub fn is_whole_bytes(content: &[u8], _: Strictness) -> bool {
    matches!(content, [0, _, ..])
}

/// Checks for a bit string with named bits: at least one bit is set, and there are no trailing zeros (X.690, section 11.2.2).
pub fn is_named_bits(content: &[u8], strictness: Strictness) -> bool {
    if !is_bit_string(content, strictness) {
        return false;
    }
    match (strictness, content) {
        (Strictness::AsFound, _) => true,
        (Strictness::Exact, [unused, .., last]) => last.trailing_zeros() == u32::from(*unused),
        (Strictness::Exact, _) => false,
    }
}

/// Allows any content.
pub fn is_octets(_: &[u8], _: Strictness) -> bool {
    true
}

/// Checks for at least one octet.
pub fn is_filled(content: &[u8], _: Strictness) -> bool {
    !content.is_empty()
}

/// Checks for no content.
pub fn is_null(content: &[u8], _: Strictness) -> bool {
    content.is_empty()
}

/// Checks that arcs have the shortest form. Arcs from a guest must also fit into 32 bits, because some programs could truncate
/// larger arcs.
pub fn is_object_identifier(content: &[u8], strictness: Strictness) -> bool {
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

fn is_utf8(content: &[u8], _: Strictness) -> bool {
    std::str::from_utf8(content).is_ok()
}

/// Checks for ASCII.
pub fn is_ascii(content: &[u8], _: Strictness) -> bool {
    content.is_ascii()
}

fn is_visible(content: &[u8], _: Strictness) -> bool {
    content.iter().all(|byte| matches!(byte, b' '..=b'~'))
}

/// Checks the text of an alternative name. Names from a guest must not contain control characters, at which some programs truncate
/// names.
pub fn is_name_text(content: &[u8], strictness: Strictness) -> bool {
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
pub fn character(bytes: &[u8]) -> Option<char> {
    let number = bytes
        .iter()
        .fold(0_u32, |number, byte| (number << 8) | u32::from(*byte));
    char::from_u32(number)
}

/// Returns whether this is a time of the form `YYMMDDhhmmssZ`.
pub fn is_utc_time(content: &[u8], _: Strictness) -> bool {
    is_time(content, 2)
}

/// Returns whether this is a time of the form `YYYYMMDDhhmmssZ`.
pub fn is_generalized_time(content: &[u8], _: Strictness) -> bool {
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
    let numbers = pairs.iter().map(|pair| u8::try_from(number(pair)?).ok());
    let numbers: Option<Vec<u8>> = numbers.collect();
    // Two digits are a year from 1950 to 2049. The century does not affect leap years in that range.
    let year = if year_digits == 2 { 2_000 + year } else { year };
    match (numbers.as_deref(), rest) {
        (Some(&[month, day, hour, minute, second]), []) => {
            let month = Month::try_from(month);
            month.is_ok_and(|month| Date::from_calendar_date(year, month, day).is_ok())
                && Time::from_hms(hour, minute, second).is_ok()
        }
        _ => false,
    }
}

fn number(digits: &[u8]) -> Option<i32> {
    digits.iter().try_fold(0, |number, digit| {
        let digit = digit.is_ascii_digit().then(|| i32::from(digit - b'0'))?;
        Some(number * 10 + digit)
    })
}

/// The tags of the universal class (X.680, section 8.4).
#[expect(missing_docs, reason = "the names are those of X.680")]
pub mod tag {
    pub(crate) const END_OF_CONTENTS: u8 = 0x00;
    pub const BOOLEAN: u8 = 0x01;
    pub const INTEGER: u8 = 0x02;
    pub const BIT_STRING: u8 = 0x03;
    pub const OCTET_STRING: u8 = 0x04;
    pub const NULL: u8 = 0x05;
    pub const OBJECT_IDENTIFIER: u8 = 0x06;
    pub(crate) const ENUMERATED: u8 = 0x0a;
    pub const UTF8_STRING: u8 = 0x0c;
    pub(crate) const PRIMITIVE_SEQUENCE: u8 = 0x10;
    pub(crate) const PRIMITIVE_SET: u8 = 0x11;
    pub const NUMERIC_STRING: u8 = 0x12;
    pub const PRINTABLE_STRING: u8 = 0x13;
    pub const TELETEX_STRING: u8 = 0x14;
    pub const IA5_STRING: u8 = 0x16;
    pub const UTC_TIME: u8 = 0x17;
    pub const GENERALIZED_TIME: u8 = 0x18;
    pub const VISIBLE_STRING: u8 = 0x1a;
    pub const UNIVERSAL_STRING: u8 = 0x1c;
    pub const BMP_STRING: u8 = 0x1e;
    pub const SEQUENCE: u8 = 0x30;
    pub const SET: u8 = 0x31;
}

/// The class bits of a tag. They are 0 in universal tags.
const CLASS: u8 = 0xc0;

/// The bit of a tag for constructed elements.
const CONSTRUCTED: u8 = 0x20;

/// The bits that are all set in the first byte of a multi-byte tag.
const HIGH_TAG: u8 = 0x1f;

/// Lengths from this value on have the long form: a byte with this value plus the number of length bytes, then these bytes.
const LONG_LENGTH: usize = 0x80;

/// An integer is negative if its first octet is at least this value.
pub const NEGATIVE: u8 = 0x80;

/// The bit that is set in every byte of an arc except the last.
const MORE_OF_ARC: u8 = 0x80;

/// The punctuation in a `PrintableString` (X.680, section 41.4).
const PRINTABLE_PUNCTUATION: &[u8] = b" '()+,-./:=?";

const LENGTH_BYTES_MAX: usize = 4;

/// The levels of nesting in a certificate and in its parts: more than any certificate needs, and safe for the stack.
pub const LEVELS_MAX: usize = 32;

#[cfg(test)]
mod tests {
    use super::{tag::OCTET_STRING, *};

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
            assert!(is_der(&written, LEVELS_MAX));
        }
    }

    #[test]
    fn only_canonical_elements_are_exact_der() {
        let cases = include_str!("cases.txt");
        for case in cases.lines().filter(|line| !line.starts_with('#')) {
            let (digits, expected) = case.split_once(' ').unwrap();
            let bytes: Vec<u8> = (0..digits.len())
                .step_by(2)
                .map(|at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap())
                .collect();
            assert_eq!(is_der(&bytes, LEVELS_MAX), expected == "der", "{digits}");
        }
    }

    #[test]
    fn one_level_past_the_limit_is_rejected() {
        let nested = |levels| (0..levels).fold(Vec::new(), |inner, _| element(SEQUENCE, &inner));
        for levels_max in [1, LEVELS_MAX] {
            assert!(is_der(&nested(levels_max), levels_max));
            assert!(!is_der(&nested(levels_max + 1), levels_max));
        }
    }
}
