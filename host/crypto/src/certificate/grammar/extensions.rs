//! Names and extensions of RFC 5280 and related standards. The values of other extensions are not checked in certificates from
//! other programs, and must be DER in bodies from guests.

use std::collections::BTreeSet;

use keywright_der::{
    LEVELS_MAX, Strictness, elements, is_ascii, is_der, is_element, is_filled, is_generalized_time,
    is_name_text, is_named_bits, is_null, is_object_identifier, is_octets, is_unsigned,
    split_element,
    tag::{
        BIT_STRING, BMP_STRING, IA5_STRING, INTEGER, NULL, NUMERIC_STRING, OCTET_STRING,
        PRINTABLE_STRING, SEQUENCE, TELETEX_STRING, UNIVERSAL_STRING, UTF8_STRING,
    },
};

use super::super::shape::{
    A_BOOLEAN, AN_OBJECT_IDENTIFIER, AN_OCTET_STRING, ANYTHING, Field, Part, Shape, constructed,
    part, primitive, sequence, sequence_of,
};

/// An extension. Its value is checked separately.
pub(super) static EXTENSION: Shape = sequence(&[
    Field::required(&AN_OBJECT_IDENTIFIER),
    Field::default(&A_BOOLEAN, &[0x01, 0x01, 0x00]),
    Field::required(&AN_OCTET_STRING),
]);

/// Checks the values of extensions, and that there are no duplicates. The shape of `list` must have been checked.
pub(super) fn check(list: &[u8], strictness: Strictness) -> Result<(), Part> {
    let mut found = BTreeSet::new();
    for extension in elements(content(content(list))) {
        let mut fields = elements(content(extension));
        let identifier = fields.next().map(content).unwrap_or_default();
        let value = fields.last().map(content).unwrap_or_default();
        if !found.insert(identifier) {
            return Err(TWICE);
        }
        match KNOWN.iter().find(|known| known.identifier == identifier) {
            Some(known) if !known.shape.is_of(value, strictness) => return Err(known.part),
            None if strictness == Strictness::Exact && !is_der(value, LEVELS_MAX) => {
                return Err(UNKNOWN);
            }
            _ => {}
        }
    }
    Ok(())
}

fn content(element: &[u8]) -> &[u8] {
    split_element(element).map_or(&[], |(_, content, _)| content)
}

/// An extension with a defined value.
struct Known {
    identifier: &'static [u8],
    part: Part,
    shape: &'static Shape,
}

macro_rules! known {
    ($name:literal, $identifier:expr, $shape:expr) => {
        Known {
            identifier: $identifier,
            part: part!($name),
            shape: $shape,
        }
    };
}

static KNOWN: [Known; 24] = [
    known!(
        "extension subjectDirectoryAttributes",
        b"\x55\x1d\x09",
        &sequence_of(&ATTRIBUTE_WITH_VALUES)
    ),
    known!(
        "extension subjectKeyIdentifier",
        b"\x55\x1d\x0e",
        &FILLED_OCTET_STRING
    ),
    known!("extension keyUsage", b"\x55\x1d\x0f", &NAMED_BITS),
    known!(
        "extension privateKeyUsagePeriod",
        b"\x55\x1d\x10",
        &sequence(&[
            Field::optional(&Shape::Primitive(primitive(0), is_generalized_time)),
            Field::optional(&Shape::Primitive(primitive(1), is_generalized_time)),
        ])
    ),
    known!("extension subjectAltName", b"\x55\x1d\x11", &GENERAL_NAMES),
    known!("extension issuerAltName", b"\x55\x1d\x12", &GENERAL_NAMES),
    known!(
        "extension basicConstraints",
        b"\x55\x1d\x13",
        &sequence(&[
            Field::default(&A_BOOLEAN, &[0x01, 0x01, 0x00]),
            Field::optional(&UNSIGNED),
        ])
    ),
    known!(
        "extension nameConstraints",
        b"\x55\x1d\x1e",
        &sequence(&[
            Field::optional(&Shape::Each(constructed(0), &SUBTREE)),
            Field::optional(&Shape::Each(constructed(1), &SUBTREE)),
        ])
    ),
    known!(
        "extension cRLDistributionPoints",
        b"\x55\x1d\x1f",
        &sequence_of(&DISTRIBUTION_POINT)
    ),
    known!(
        "extension certificatePolicies",
        b"\x55\x1d\x20",
        &sequence_of(&POLICY)
    ),
    known!(
        "extension policyMappings",
        b"\x55\x1d\x21",
        &sequence_of(&POLICY_MAPPING)
    ),
    known!(
        "extension authorityKeyIdentifier",
        b"\x55\x1d\x23",
        &sequence(&[
            Field::optional(&Shape::Primitive(primitive(0), is_octets)),
            Field::optional(&GENERAL_NAMES_1),
            Field::optional(&UNSIGNED_2),
        ])
    ),
    known!(
        "extension policyConstraints",
        b"\x55\x1d\x24",
        &sequence(&[Field::optional(&UNSIGNED_0), Field::optional(&UNSIGNED_1)])
    ),
    known!(
        "extension extKeyUsage",
        b"\x55\x1d\x25",
        &sequence_of(&AN_OBJECT_IDENTIFIER)
    ),
    known!(
        "extension freshestCRL",
        b"\x55\x1d\x2e",
        &sequence_of(&DISTRIBUTION_POINT)
    ),
    known!("extension inhibitAnyPolicy", b"\x55\x1d\x36", &UNSIGNED),
    known!(
        "extension authorityInfoAccess",
        b"\x2b\x06\x01\x05\x05\x07\x01\x01",
        &sequence_of(&ACCESS)
    ),
    known!(
        "extension subjectInfoAccess",
        b"\x2b\x06\x01\x05\x05\x07\x01\x0b",
        &sequence_of(&ACCESS)
    ),
    known!(
        "extension tlsFeature",
        b"\x2b\x06\x01\x05\x05\x07\x01\x18",
        &sequence_of(&UNSIGNED)
    ),
    known!(
        "extension ocspNoCheck",
        b"\x2b\x06\x01\x05\x05\x07\x30\x01\x05",
        &Shape::Primitive(NULL, is_null)
    ),
    known!(
        "extension netscapeCertType",
        b"\x60\x86\x48\x01\x86\xf8\x42\x01\x01",
        &NAMED_BITS
    ),
    known!(
        "extension netscapeComment",
        b"\x60\x86\x48\x01\x86\xf8\x42\x01\x0d",
        &Shape::Primitive(IA5_STRING, is_ascii)
    ),
    known!(
        "extension signedCertificateTimestampList",
        b"\x2b\x06\x01\x04\x01\xd6\x79\x02\x04\x02",
        &FILLED_OCTET_STRING
    ),
    known!(
        "extension precertificatePoison",
        b"\x2b\x06\x01\x04\x01\xd6\x79\x02\x04\x03",
        &Shape::Primitive(NULL, is_null)
    ),
];

static FILLED_OCTET_STRING: Shape = Shape::Primitive(OCTET_STRING, is_filled);
static NAMED_BITS: Shape = Shape::Primitive(BIT_STRING, is_named_bits);
static UNSIGNED: Shape = Shape::Primitive(INTEGER, is_unsigned);
static UNSIGNED_0: Shape = Shape::Primitive(primitive(0), is_unsigned);
static UNSIGNED_1: Shape = Shape::Primitive(primitive(1), is_unsigned);
static UNSIGNED_2: Shape = Shape::Primitive(primitive(2), is_unsigned);

static ATTRIBUTE_WITH_VALUES: Shape = sequence(&[
    Field::required(&AN_OBJECT_IDENTIFIER),
    Field::required(&Shape::EachSorted(&ANYTHING)),
]);

static SUBTREE: Shape = sequence(&[
    Field::required(&SUBTREE_NAME),
    Field::default(&UNSIGNED_0, &[0x80, 0x01, 0x00]),
    Field::optional(&UNSIGNED_1),
]);

static DISTRIBUTION_POINT: Shape = sequence(&[
    Field::optional(&Shape::Fields(
        constructed(0),
        &[Field::required(&Shape::Choice(&[
            Shape::Each(constructed(0), &GENERAL_NAME),
            Shape::Each(constructed(1), &ATTRIBUTE),
        ]))],
    )),
    Field::optional(&Shape::Primitive(primitive(1), is_named_bits)),
    Field::optional(&GENERAL_NAMES_2),
]);

static POLICY: Shape = sequence(&[
    Field::required(&AN_OBJECT_IDENTIFIER),
    Field::optional(&sequence_of(&POLICY_QUALIFIER)),
]);

static POLICY_QUALIFIER: Shape = sequence(&[
    Field::required(&AN_OBJECT_IDENTIFIER),
    Field::optional(&ANYTHING),
]);

static POLICY_MAPPING: Shape = sequence(&[
    Field::required(&AN_OBJECT_IDENTIFIER),
    Field::required(&AN_OBJECT_IDENTIFIER),
]);

static ACCESS: Shape = sequence(&[
    Field::required(&AN_OBJECT_IDENTIFIER),
    Field::required(&GENERAL_NAME),
]);

pub(super) const LIST: Part = part!("list of extensions");
const TWICE: Part = Part {
    of_certificate: "has the same extension twice",
    of_body: "no extension may occur twice",
};
const UNKNOWN: Part = part!("extension of an unknown kind");

// Names of subjects and issuers, and general names (RFC 5280, sections 4.1.2.4 and 4.2.1.6).

/// A name, which may be empty.
pub(super) static NAME: Shape = Shape::EachOrNone(SEQUENCE, &RELATIVE_NAME);

/// A name that is not empty.
pub(super) static FILLED_NAME: Shape = sequence_of(&RELATIVE_NAME);

static RELATIVE_NAME: Shape = Shape::EachSorted(&ATTRIBUTE);

/// An attribute of a relative distinguished name.
static ATTRIBUTE: Shape = sequence(&[
    Field::required(&AN_OBJECT_IDENTIFIER),
    Field::required(&TEXT),
]);

/// The string types of attributes in names: the only types that other programs support.
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

static GENERAL_NAMES: Shape = sequence_of(&GENERAL_NAME);

static GENERAL_NAME: Shape = Shape::Choice(&GENERAL_NAME_FORMS);

/// General names in a field `[1]`.
static GENERAL_NAMES_1: Shape = Shape::Each(constructed(1), &GENERAL_NAME);

/// General names in a field `[2]`.
static GENERAL_NAMES_2: Shape = Shape::Each(constructed(2), &GENERAL_NAME);

/// A general name that represents a subtree. An IP address includes a mask.
static SUBTREE_NAME: Shape = Shape::Choice(&[
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
