//! Shapes: the structure of elements, similar to ASN.1 modules, for checking bytes.
//!
//! Shapes are finite and not recursive. So a check is no deeper than the shape, and reads each byte once per level.

use keywright_der::{
    Strictness, is_boolean, is_element, is_integer, is_object_identifier, is_octets, split_element,
    tag::{BOOLEAN, INTEGER, OBJECT_IDENTIFIER, OCTET_STRING, SEQUENCE, SET},
};

/// The structure of an element.
pub(super) enum Shape {
    /// Any element that is DER at every level.
    Any,
    /// An element of this shape, checked with [`Strictness::AsFound`]. Its bytes are compared elsewhere.
    AsFound(&'static Shape),
    /// One of several shapes with different tags: `CHOICE`.
    Choice(&'static [Shape]),
    /// An element with this tag that contains one or more elements of a shape: `SEQUENCE OF`.
    Each(u8, &'static Shape),
    /// Like [`Shape::Each`], but may be empty.
    EachOrNone(u8, &'static Shape),
    /// Like [`Shape::Each`], with elements in ascending byte order: `SET OF`.
    EachSorted(&'static Shape),
    /// An element with this tag that contains exactly these fields, in this order: `SEQUENCE`, or an explicit tag.
    Fields(u8, &'static [Field]),
    /// An element with this tag whose content passes this check.
    Primitive(u8, fn(&[u8], Strictness) -> bool),
}

pub(super) struct Field {
    presence: Presence,
    shape: &'static Shape,
}

enum Presence {
    Required,
    Optional,
    /// The encoded default value, which DER requires to be omitted.
    Default(&'static [u8]),
}

impl Field {
    pub(super) const fn required(shape: &'static Shape) -> Self {
        Self {
            presence: Presence::Required,
            shape,
        }
    }

    pub(super) const fn optional(shape: &'static Shape) -> Self {
        Self {
            presence: Presence::Optional,
            shape,
        }
    }

    pub(super) const fn default(shape: &'static Shape, value: &'static [u8]) -> Self {
        Self {
            presence: Presence::Default(value),
            shape,
        }
    }

    /// Takes the field from the start of the bytes and returns the rest, or `None` if it is malformed.
    fn take<'a>(&self, bytes: &'a [u8], strictness: Strictness) -> Option<&'a [u8]> {
        let is_present = bytes
            .first()
            .is_some_and(|tag| self.shape.may_have_tag(*tag));
        if !is_present {
            return (!matches!(self.presence, Presence::Required)).then_some(bytes);
        }
        let rest = self.shape.take(bytes, strictness)?;
        let is_default = matches!(self.presence, Presence::Default(value)
            if bytes.get(..bytes.len() - rest.len()) == Some(value));
        (!is_default || strictness == Strictness::AsFound).then_some(rest)
    }
}

impl Shape {
    /// Returns whether the bytes are exactly one element of this shape.
    pub(super) fn is_of(&self, bytes: &[u8], strictness: Strictness) -> bool {
        self.take(bytes, strictness).is_some_and(<[u8]>::is_empty)
    }

    /// Takes an element of this shape from the start of the bytes and returns the rest.
    fn take<'a>(&self, bytes: &'a [u8], strictness: Strictness) -> Option<&'a [u8]> {
        let (tag, content, rest) = split_element(bytes)?;
        if !self.may_have_tag(tag) {
            return None;
        }
        let is_well_formed = match self {
            Self::Any => is_element(tag, content, strictness),
            Self::AsFound(shape) => return shape.take(bytes, Strictness::AsFound),
            Self::Choice(shapes) => {
                return shapes
                    .iter()
                    .find(|shape| shape.may_have_tag(tag))?
                    .take(bytes, strictness);
            }
            Self::Each(_, shape) => {
                !content.is_empty() && each(shape, content, strictness, |_, _| true)
            }
            Self::EachOrNone(_, shape) => each(shape, content, strictness, |_, _| true),
            Self::EachSorted(shape) => {
                let is_sorted =
                    |one: &[u8], next: &[u8]| one <= next || strictness == Strictness::AsFound;
                !content.is_empty() && each(shape, content, strictness, is_sorted)
            }
            Self::Fields(_, fields) => broken_field(fields, content, strictness).is_none(),
            Self::Primitive(_, is_content) => is_content(content, strictness),
        };
        is_well_formed.then_some(rest)
    }

    fn may_have_tag(&self, tag: u8) -> bool {
        match self {
            Self::Any => true,
            Self::AsFound(shape) => shape.may_have_tag(tag),
            Self::Choice(shapes) => shapes.iter().any(|shape| shape.may_have_tag(tag)),
            Self::Each(own, _)
            | Self::EachOrNone(own, _)
            | Self::Fields(own, _)
            | Self::Primitive(own, _) => *own == tag,
            Self::EachSorted(_) => tag == SET,
        }
    }
}

/// Returns the index of the first malformed field, or of the last field if other bytes follow it.
pub(super) fn broken_field(
    fields: &[Field],
    content: &[u8],
    strictness: Strictness,
) -> Option<usize> {
    let mut rest = content;
    for (index, field) in fields.iter().enumerate() {
        match field.take(rest, strictness) {
            Some(after) => rest = after,
            None => return Some(index),
        }
    }
    (!rest.is_empty()).then(|| fields.len().saturating_sub(1))
}

/// Returns whether the content consists of elements of one shape, and `may_follow(previous, element)` is true for each element.
fn each(
    shape: &Shape,
    content: &[u8],
    strictness: Strictness,
    may_follow: impl Fn(&[u8], &[u8]) -> bool,
) -> bool {
    let mut rest = content;
    let mut previous: &[u8] = &[];
    while !rest.is_empty() {
        let Some(after) = shape.take(rest, strictness) else {
            return false;
        };
        let Some(element) = rest.get(..rest.len() - after.len()) else {
            return false;
        };
        if !may_follow(previous, element) {
            return false;
        }
        (previous, rest) = (element, after);
    }
    true
}

pub(super) static A_BOOLEAN: Shape = Shape::Primitive(BOOLEAN, is_boolean);
pub(super) static AN_INTEGER: Shape = Shape::Primitive(INTEGER, is_integer);
pub(super) static AN_OBJECT_IDENTIFIER: Shape =
    Shape::Primitive(OBJECT_IDENTIFIER, is_object_identifier);
pub(super) static AN_OCTET_STRING: Shape = Shape::Primitive(OCTET_STRING, is_octets);
pub(super) static ANYTHING: Shape = Shape::Any;

/// Returns the tag of a constructed field `[number]`.
pub(super) const fn constructed(number: u8) -> u8 {
    0xa0 | number
}

/// Returns the tag of a primitive field `[number]`.
pub(super) const fn primitive(number: u8) -> u8 {
    0x80 | number
}

pub(super) const fn sequence(fields: &'static [Field]) -> Shape {
    Shape::Fields(SEQUENCE, fields)
}

/// Returns the shape of a sequence of one or more elements of a shape.
pub(super) const fn sequence_of(shape: &'static Shape) -> Shape {
    Shape::Each(SEQUENCE, shape)
}

/// The messages for a malformed part of a certificate.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    /// The message for callers, which follows the name of a field.
    pub(super) of_certificate: &'static str,
    /// The message for guests.
    pub(super) of_body: &'static str,
}

/// Creates a part from its name, in one or more pieces.
macro_rules! part {
    ($($name:literal),*) => {
        crate::certificate::shape::Part {
            of_certificate: concat!(
                "has a malformed ",
                $($name,)*
                ": the PEM block must contain DER as RFC 5280 defines it"
            ),
            of_body: concat!(
                "the body has a malformed ",
                $($name,)*
                ": it must be DER as RFC 5280 defines it"
            ),
        }
    };
}
pub(super) use part;
