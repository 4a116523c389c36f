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

use x509_parser::asn1_rs::oid;

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

/// Creates extensions from their names, their identifiers and the shapes of their values.
macro_rules! known {
    ($($name:literal $identifier:expr => $shape:expr;)*) => {
        &[$(Known {
            identifier: &$identifier,
            part: part!("extension ", $name),
            shape: &$shape,
        }),*]
    };
}

static KNOWN: &[Known] = known! {
    "subjectDirectoryAttributes" oid!(raw 2.5.29.9) => sequence_of(&ATTRIBUTE_WITH_VALUES);
    "subjectKeyIdentifier" oid!(raw 2.5.29.14) => FILLED_OCTET_STRING;
    "keyUsage" oid!(raw 2.5.29.15) => NAMED_BITS;
    "privateKeyUsagePeriod" oid!(raw 2.5.29.16) => sequence(&[
        Field::optional(&Shape::Primitive(primitive(0), is_generalized_time)),
        Field::optional(&Shape::Primitive(primitive(1), is_generalized_time))
    ]);
    "subjectAltName" oid!(raw 2.5.29.17) => GENERAL_NAMES;
    "issuerAltName" oid!(raw 2.5.29.18) => GENERAL_NAMES;
    "basicConstraints" oid!(raw 2.5.29.19) => sequence(&[
        Field::default(&A_BOOLEAN, &[0x01, 0x01, 0x00]),
        Field::optional(&UNSIGNED)
    ]);
    "nameConstraints" oid!(raw 2.5.29.30) => sequence(&[
        Field::optional(&Shape::Each(constructed(0), &SUBTREE)),
        Field::optional(&Shape::Each(constructed(1), &SUBTREE))
    ]);
    "cRLDistributionPoints" oid!(raw 2.5.29.31) => sequence_of(&DISTRIBUTION_POINT);
    "certificatePolicies" oid!(raw 2.5.29.32) => sequence_of(&POLICY);
    "policyMappings" oid!(raw 2.5.29.33) => sequence_of(&POLICY_MAPPING);
    "authorityKeyIdentifier" oid!(raw 2.5.29.35) => sequence(&[
        Field::optional(&Shape::Primitive(primitive(0), is_octets)),
        Field::optional(&GENERAL_NAMES_1),
        Field::optional(&UNSIGNED_2)
    ]);
    "policyConstraints" oid!(raw 2.5.29.36) => sequence(&[Field::optional(&UNSIGNED_0), Field::optional(&UNSIGNED_1)]);
    "extKeyUsage" oid!(raw 2.5.29.37) => sequence_of(&AN_OBJECT_IDENTIFIER);
    "freshestCRL" oid!(raw 2.5.29.46) => sequence_of(&DISTRIBUTION_POINT);
    "inhibitAnyPolicy" oid!(raw 2.5.29.54) => UNSIGNED;
    "authorityInfoAccess" oid!(raw 1.3.6.1.5.5.7.1.1) => sequence_of(&ACCESS);
    "subjectInfoAccess" oid!(raw 1.3.6.1.5.5.7.1.11) => sequence_of(&ACCESS);
    "tlsFeature" oid!(raw 1.3.6.1.5.5.7.1.24) => sequence_of(&UNSIGNED);
    "ocspNoCheck" oid!(raw 1.3.6.1.5.5.7.48.1.5) => Shape::Primitive(NULL, is_null);
    "netscapeCertType" oid!(raw 2.16.840.1.113730.1.1) => NAMED_BITS;
    "netscapeComment" oid!(raw 2.16.840.1.113730.1.13) => Shape::Primitive(IA5_STRING, is_ascii);
    "signedCertificateTimestampList" oid!(raw 1.3.6.1.4.1.11129.2.4.2) => FILLED_OCTET_STRING;
    "precertificatePoison" oid!(raw 1.3.6.1.4.1.11129.2.4.3) => Shape::Primitive(NULL, is_null);
};

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

static GENERAL_NAME: Shape =
    Shape::Choice(&general_names(|content, _| matches!(content.len(), 4 | 16)));

/// General names in a field `[1]`.
static GENERAL_NAMES_1: Shape = Shape::Each(constructed(1), &GENERAL_NAME);

/// General names in a field `[2]`.
static GENERAL_NAMES_2: Shape = Shape::Each(constructed(2), &GENERAL_NAME);

/// A general name that represents a subtree. An IP address includes a mask.
static SUBTREE_NAME: Shape =
    Shape::Choice(&general_names(|content, _| matches!(content.len(), 8 | 32)));

const fn general_names(is_ip_address: fn(&[u8], Strictness) -> bool) -> [Shape; 9] {
    [
        OTHER_NAME,
        EMAIL_ADDRESS,
        DNS_NAME,
        X400_ADDRESS,
        DIRECTORY_NAME,
        EDI_PARTY_NAME,
        URI,
        Shape::Primitive(primitive(7), is_ip_address),
        REGISTERED_ID,
    ]
}

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
