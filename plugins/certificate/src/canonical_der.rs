//! Telling whether bytes are DER all the way down.
//!
//! What is kept of a certificate of another program is not written anew, and an authority signs only what is DER.

use der::{
    Decode, Reader, SliceReader, Tag, Tagged,
    asn1::{AnyRef, BitStringRef, IntRef, Null},
};

/// Whether the bytes are one element of DER after the other, in every constructed element as well, and the booleans,
/// integers and bit strings among them in their only form.
#[must_use]
pub fn is_der(bytes: &[u8]) -> bool {
    is_der_at_depth(bytes, 0)
}

fn is_der_at_depth(bytes: &[u8], depth: usize) -> bool {
    let Ok(mut reader) = SliceReader::new(bytes) else {
        return false;
    };
    while !reader.is_finished() {
        let is_well_formed = depth <= DEPTH_MAX
            && reader
                .tlv_bytes()
                .and_then(AnyRef::from_der)
                .is_ok_and(|element| is_element(element, depth));
        if !is_well_formed {
            return false;
        }
    }
    true
}

fn is_element(element: AnyRef<'_>, depth: usize) -> bool {
    match element.tag() {
        Tag::Boolean => element.decode_as::<bool>().is_ok(),
        Tag::Integer => element.decode_as::<IntRef<'_>>().is_ok(),
        Tag::BitString => element.decode_as::<BitStringRef<'_>>().is_ok(),
        Tag::Null => element.decode_as::<Null>().is_ok(),
        // The value of an extension is DER within octets.
        Tag::OctetString if depth == 1 => is_der_at_depth(element.value(), depth + 1),
        tag if tag.is_constructed() => is_der_at_depth(element.value(), depth + 1),
        _ => true,
    }
}

/// More than any part of a certificate needs.
const DEPTH_MAX: usize = 24;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_one_form_of_each_element_is_der_at_any_depth() {
        for (bytes, expected) in [
            (&[0x30, 0x03, 0x01, 0x01, 0xff][..], true),
            (&[0x30, 0x03, 0x01, 0x01, 0x01], false),
            (&[0x30, 0x80, 0x00, 0x00], false),
            (&[0x30, 0x81, 0x03, 0x01, 0x01, 0xff], false),
            (&[0xa0, 0x04, 0x02, 0x02, 0x00, 0x80], true),
            (&[0xa0, 0x04, 0x02, 0x02, 0x00, 0x7f], false),
            (&[0x30, 0x05, 0x31, 0x03, 0x0c, 0x01, b'x'], true),
            (&[0x30, 0x05, 0x04, 0x03, 0x01, 0x01, 0x01], false),
            (&[0x04, 0x03, 0x01, 0x01, 0x01], true),
            (&[0x30, 0x04, 0x03, 0x02, 0x07, 0x80], true),
            (&[0x05, 0x01, 0x00], false),
            (&[0x30, 0x02, 0x30], false),
            (&[], true),
        ] {
            assert_eq!(is_der(bytes), expected, "{bytes:x?}");
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
