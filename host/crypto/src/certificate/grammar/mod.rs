//! The definitions of X.509 (RFC 5280), for certificates that callers set and bodies that guests generate.
//!
//! The certificate parser accepts more than these definitions allow, and other programs accept other things. So the host checks
//! certificates against the definitions before it parses, stores or signs them.

mod extensions;
mod names;
mod public_keys;

use super::{
    der::{
        BIT_STRING, GENERALIZED_TIME, INTEGER, SEQUENCE, Strictness, UTC_TIME, elements,
        is_bit_string, is_generalized_time, is_utc_time, is_whole_bytes, split_element,
    },
    shape::{
        AN_INTEGER, AN_OBJECT_IDENTIFIER, ANYTHING, Field, Shape, broken_field, constructed,
        primitive, sequence, sequence_of,
    },
};

/// A part of a certificate that breaks its definition, with its messages.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    /// The message for callers, after the name of a field.
    pub(super) of_certificate: &'static str,
    /// The message for guests.
    pub(super) of_body: &'static str,
}

/// Creates a part from its name.
macro_rules! part {
    ($name:literal) => {
        crate::certificate::grammar::Part {
            of_certificate: concat!(
                "has a malformed ",
                $name,
                ": it must be DER as RFC 5280 defines it"
            ),
            of_body: concat!(
                "the body has a malformed ",
                $name,
                ": it must be DER as RFC 5280 defines it"
            ),
        }
    };
}
use part;

/// Checks a certificate from another program.
///
/// # Errors
/// The first part that is malformed.
pub(super) fn check_certificate(certificate: &[u8]) -> Result<(), Part> {
    let strictness = Strictness::AsFound;
    let Some((SEQUENCE, content, [])) = split_element(certificate) else {
        return Err(ENCODING);
    };
    if let Some(index) = broken_field(&CERTIFICATE, content, strictness) {
        return Err(*CERTIFICATE_PARTS.get(index).unwrap_or(&ENCODING));
    }
    let mut fields = elements(content);
    let body = fields.next().unwrap_or_default();
    let signature_algorithm = fields.next();
    check_body(body, strictness)?;
    if signature_algorithm != Some(Fields::of(body).signature_algorithm) {
        return Err(SIGNATURE_ALGORITHM);
    }
    Ok(())
}

/// Checks the body of a certificate.
///
/// # Errors
/// The first part that is malformed.
pub(super) fn check_body(body: &[u8], strictness: Strictness) -> Result<(), Part> {
    let Some((SEQUENCE, content, [])) = split_element(body) else {
        return Err(ENCODING);
    };
    if let Some(index) = broken_field(&BODY, content, strictness) {
        return Err(*BODY_PARTS.get(index).unwrap_or(&ENCODING));
    }
    let fields = Fields::of(body);
    if !public_keys::is_public_key(fields.public_key, strictness) {
        return Err(PUBLIC_KEY);
    }
    let Some(extensions) = fields.extensions else {
        return Ok(());
    };
    if fields.version != Some(VERSION_3) {
        return Err(VERSION);
    }
    extensions::check(extensions, strictness)
}

/// Fields of a body. Its shape must have been checked.
struct Fields<'a> {
    version: Option<&'a [u8]>,
    signature_algorithm: &'a [u8],
    public_key: &'a [u8],
    extensions: Option<&'a [u8]>,
}

impl<'a> Fields<'a> {
    fn of(body: &'a [u8]) -> Self {
        let content = split_element(body).map_or(&[][..], |(_, content, _)| content);
        let has_tag = |element: &&[u8], tag| element.first() == Some(&tag);
        let version = elements(content).next();
        let version = version.filter(|first| has_tag(first, constructed(0)));
        let mut fields = elements(content).skip(usize::from(version.is_some()));
        // Skips the serial number, then the issuer, the validity and the subject.
        let signature_algorithm = fields.nth(1).unwrap_or_default();
        let public_key = fields.nth(3).unwrap_or_default();
        Self {
            version,
            signature_algorithm,
            public_key,
            extensions: fields.find(|field| has_tag(field, constructed(3))),
        }
    }
}

static CERTIFICATE: [Field; 3] = [
    // Checked separately.
    Field::required(&BODY_OF_ANY_CONTENT),
    Field::required(&ALGORITHM),
    Field::required(&SIGNATURE),
];

const CERTIFICATE_PARTS: [Part; 3] = [ENCODING, SIGNATURE_ALGORITHM, part!("signature")];

static BODY: [Field; 10] = [
    Field::default(&VERSION_NUMBER, &[0xa0, 0x03, 0x02, 0x01, 0x00]),
    Field::required(&AN_INTEGER),
    Field::required(&ALGORITHM),
    Field::required(&ISSUER),
    Field::required(&VALIDITY),
    Field::required(&names::NAME),
    Field::required(&public_keys::PUBLIC_KEY_INFO),
    Field::optional(&ISSUER_IDENTIFIER),
    Field::optional(&SUBJECT_IDENTIFIER),
    Field::optional(&EXTENSIONS),
];

const BODY_PARTS: [Part; 10] = [
    VERSION,
    part!("serial number"),
    SIGNATURE_ALGORITHM,
    part!("issuer"),
    part!("validity"),
    part!("subject"),
    PUBLIC_KEY,
    part!("issuer unique identifier"),
    part!("subject unique identifier"),
    extensions::LIST,
];

/// A body. Its content is checked separately.
static BODY_OF_ANY_CONTENT: Shape = Shape::Primitive(SEQUENCE, |_, _| true);
static SIGNATURE: Shape = Shape::Primitive(BIT_STRING, is_whole_bytes);

static VERSION_NUMBER: Shape = Shape::Fields(
    constructed(0),
    &[Field::required(&Shape::Primitive(INTEGER, |content, _| {
        matches!(content, [0..=2])
    }))],
);

/// An algorithm with its parameters.
static ALGORITHM: Shape = sequence(&[
    Field::required(&AN_OBJECT_IDENTIFIER),
    Field::optional(&ANYTHING),
]);

/// The issuer's name, copied byte for byte from its certificate, which may come from another program. It is never empty.
static ISSUER: Shape = Shape::AsFound(&names::FILLED_NAME);

static VALIDITY: Shape = sequence(&[Field::required(&TIME), Field::required(&TIME)]);

static TIME: Shape = Shape::Choice(&[
    Shape::Primitive(UTC_TIME, is_utc_time),
    Shape::Primitive(GENERALIZED_TIME, is_time_from_2050),
]);

static ISSUER_IDENTIFIER: Shape = Shape::Primitive(primitive(1), is_bit_string);
static SUBJECT_IDENTIFIER: Shape = Shape::Primitive(primitive(2), is_bit_string);

static EXTENSIONS: Shape = Shape::Fields(
    constructed(3),
    &[Field::required(&sequence_of(&extensions::EXTENSION))],
);

/// Years before 2050 must use `UTCTime` (RFC 5280, section 4.1.2.5).
fn is_time_from_2050(content: &[u8], strictness: Strictness) -> bool {
    is_generalized_time(content, strictness)
        && (strictness == Strictness::AsFound || content >= &b"2050"[..])
}

const VERSION_3: &[u8] = &[0xa0, 0x03, 0x02, 0x01, 0x02];

const ENCODING: Part = part!("encoding");
const PUBLIC_KEY: Part = part!("public key");
const SIGNATURE_ALGORITHM: Part = part!("signature algorithm");
const VERSION: Part = part!("version");
