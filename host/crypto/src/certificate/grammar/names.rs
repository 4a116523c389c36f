//! Names of subjects and issuers, and general names (RFC 5280, sections 4.1.2.4 and 4.2.1.6).

use super::super::{
    der::{
        BIT_STRING, BMP_STRING, IA5_STRING, NUMERIC_STRING, PRINTABLE_STRING, SEQUENCE,
        TELETEX_STRING, UNIVERSAL_STRING, UTF8_STRING, is_element, is_name_text,
        is_object_identifier,
    },
    shape::{
        AN_OBJECT_IDENTIFIER, ANYTHING, Field, Shape, constructed, primitive, sequence, sequence_of,
    },
};

/// A name, which may be empty.
pub(super) static NAME: Shape = Shape::EachOrNone(SEQUENCE, &RELATIVE_NAME);

/// A name that is not empty.
pub(super) static FILLED_NAME: Shape = sequence_of(&RELATIVE_NAME);

static RELATIVE_NAME: Shape = Shape::EachSorted(&ATTRIBUTE);

/// An attribute of a relative distinguished name.
pub(super) static ATTRIBUTE: Shape = sequence(&[
    Field::required(&AN_OBJECT_IDENTIFIER),
    Field::required(&TEXT),
]);

/// The string types of attributes in names. Other programs support no other types.
static TEXT: Shape = Shape::Choice(&[
    text::<BIT_STRING>(),
    text::<BMP_STRING>(),
    text::<IA5_STRING>(),
    text::<NUMERIC_STRING>(),
    text::<PRINTABLE_STRING>(),
    text::<TELETEX_STRING>(),
    text::<UNIVERSAL_STRING>(),
    text::<UTF8_STRING>(),
]);

const fn text<const TAG: u8>() -> Shape {
    Shape::Primitive(TAG, |content, strictness| {
        is_element(TAG, content, strictness)
    })
}

pub(super) static GENERAL_NAMES: Shape = sequence_of(&GENERAL_NAME);

pub(super) static GENERAL_NAME: Shape = Shape::Choice(&GENERAL_NAME_FORMS);

/// General names in a field `[1]`.
pub(super) static GENERAL_NAMES_1: Shape = Shape::Each(constructed(1), &GENERAL_NAME);

/// General names in a field `[2]`.
pub(super) static GENERAL_NAMES_2: Shape = Shape::Each(constructed(2), &GENERAL_NAME);

/// A general name that represents a subtree: an IP address with its mask.
pub(super) static SUBTREE_NAME: Shape = Shape::Choice(&[
    OTHER_NAME,
    EMAIL_ADDRESS,
    DNS_NAME,
    X400_ADDRESS,
    DIRECTORY_NAME,
    EDI_PARTY_NAME,
    URI,
    Shape::Primitive(primitive(7), |content, _| matches!(content.len(), 8 | 32)),
    REGISTERED_ID,
]);

static GENERAL_NAME_FORMS: [Shape; 9] = [
    OTHER_NAME,
    EMAIL_ADDRESS,
    DNS_NAME,
    X400_ADDRESS,
    DIRECTORY_NAME,
    EDI_PARTY_NAME,
    URI,
    Shape::Primitive(primitive(7), |content, _| matches!(content.len(), 4 | 16)),
    REGISTERED_ID,
];

const OTHER_NAME: Shape = Shape::Fields(
    constructed(0),
    &[
        Field::required(&AN_OBJECT_IDENTIFIER),
        Field::required(&ANYTHING_IN_0),
    ],
);
const EMAIL_ADDRESS: Shape = Shape::Primitive(primitive(1), is_name_text);
const DNS_NAME: Shape = Shape::Primitive(primitive(2), is_name_text);
const X400_ADDRESS: Shape = Shape::EachOrNone(constructed(3), &ANYTHING);
const DIRECTORY_NAME: Shape = Shape::Fields(constructed(4), &[Field::required(&NAME)]);
const EDI_PARTY_NAME: Shape = Shape::Fields(
    constructed(5),
    &[Field::optional(&TEXT_IN_0), Field::required(&TEXT_IN_1)],
);
const URI: Shape = Shape::Primitive(primitive(6), is_name_text);
const REGISTERED_ID: Shape = Shape::Primitive(primitive(8), is_object_identifier);

static ANYTHING_IN_0: Shape = Shape::Fields(constructed(0), &[Field::required(&ANYTHING)]);
static TEXT_IN_0: Shape = Shape::Fields(constructed(0), &[Field::required(&TEXT)]);
static TEXT_IN_1: Shape = Shape::Fields(constructed(1), &[Field::required(&TEXT)]);
