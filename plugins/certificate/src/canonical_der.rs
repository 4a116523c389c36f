//! Telling whether bytes are DER all the way down.
//!
//! What is kept of a certificate of another program is not written anew, and an authority signs only what is DER. What the
//! host's definition refuses, this one must refuse too, so that the caller is told; the two are held against the same cases.

/// Whether the bytes are DER elements from their beginning to their end: definite and shortest lengths, low tags, and
/// booleans, integers, bit strings and times in their only form (X.690). What octet strings hold is not looked at.
#[must_use]
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
            is_der_at_depth(content, depth + 1)
        };
        if !is_well_formed {
            return false;
        }
        bytes = rest;
    }
    true
}

/// The tag and the content of the first element, and what follows it.
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

fn is_primitive(tag: u8, content: &[u8]) -> bool {
    match tag {
        BOOLEAN => matches!(content, [0x00 | 0xff]),
        INTEGER => match content {
            [] | [0x00, 0x00..=0x7f, ..] | [0xff, 0x80..=0xff, ..] => false,
            [_, ..] => true,
        },
        BIT_STRING => match content {
            [0, ..] => true,
            [unused @ 1..=7, .., last] => last.trailing_zeros() >= u32::from(*unused),
            _ => false,
        },
        NULL => content.is_empty(),
        UTC_TIME => is_time(content, UTC_TIME_DIGITS),
        GENERALIZED_TIME => is_time(content, GENERALIZED_TIME_DIGITS),
        _ => true,
    }
}

/// So many digits, in universal time.
fn is_time(content: &[u8], digits: usize) -> bool {
    content.split_last().is_some_and(|(zone, time)| {
        *zone == b'Z' && time.len() == digits && time.iter().all(u8::is_ascii_digit)
    })
}

const BOOLEAN: u8 = 0x01;
const INTEGER: u8 = 0x02;
const BIT_STRING: u8 = 0x03;
const NULL: u8 = 0x05;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;

/// The bit of a tag that says that elements are inside.
const CONSTRUCTED: u8 = 0x20;

/// The bits of a tag that say that more of it follows.
const HIGH_TAG: u8 = 0x1f;

/// From here on a length byte counts the bytes of the length.
const LONG_LENGTH: usize = 0x80;

const LENGTH_BYTES_MAX: usize = 4;
const UTC_TIME_DIGITS: usize = 12;
const GENERALIZED_TIME_DIGITS: usize = 14;

/// More than any part of a certificate needs, and less than an authority takes of the whole.
const DEPTH_MAX: usize = 24;

#[cfg(test)]
mod tests {
    use super::*;

    /// The cases that both definitions of DER are held against.
    const CASES: &str = include_str!("../../../host/crypto/tests/certificates/der_cases.txt");

    #[test]
    fn only_the_one_form_of_each_element_is_der_at_any_depth() {
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
    fn nesting_without_end_is_not_taken() {
        let nested = (0..40_u8).fold(Vec::new(), |inner, _| {
            let length = u8::try_from(inner.len()).unwrap();
            [&[0x30, length][..], &inner].concat()
        });
        assert!(!is_der(&nested));
    }
}
