//! The definitions of X.509 (RFC 5280), for certificates that callers set and bodies that guests generate.
//!
//! The certificate parser accepts more than these definitions allow, and other programs accept different deviations. So the host
//! checks certificates against the definitions before it parses, stores or signs them.

mod extensions;

use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_ASN1, ECDSA_P384_SHA384_ASN1, ECDSA_P521_SHA512_ASN1,
    EcdsaVerificationAlgorithm, ParsedPublicKey,
};
use keywright_der::{
    Strictness, elements, is_bit_string, is_generalized_time, is_unsigned, is_utc_time,
    is_whole_bytes, split_element,
    tag::{BIT_STRING, GENERALIZED_TIME, INTEGER, NULL, OBJECT_IDENTIFIER, SEQUENCE, UTC_TIME},
};

use super::shape::{
    AN_INTEGER, AN_OBJECT_IDENTIFIER, ANYTHING, Field, Part, Shape, broken_field, constructed,
    part, primitive, sequence, sequence_of,
};

/// Checks a certificate from another program.
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

pub(super) fn check_body(body: &[u8], strictness: Strictness) -> Result<(), Part> {
    let Some((SEQUENCE, content, [])) = split_element(body) else {
        return Err(ENCODING);
    };
    if let Some(index) = broken_field(&BODY, content, strictness) {
        return Err(*BODY_PARTS.get(index).unwrap_or(&ENCODING));
    }
    let fields = Fields::of(body);
    if !is_public_key(fields.public_key, strictness) {
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
    Field::required(&extensions::NAME),
    Field::required(&PUBLIC_KEY_INFO),
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
static ISSUER: Shape = Shape::AsFound(&extensions::FILLED_NAME);

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

/// `SubjectPublicKeyInfo`: a public key, and the parameters of its algorithm (RFC 3279, RFC 5480, RFC 8410).
static PUBLIC_KEY_INFO: Shape = sequence(&[
    Field::required(&ALGORITHM),
    Field::required(&Shape::Primitive(BIT_STRING, is_whole_bytes)),
]);

/// Returns whether the algorithm of a `SubjectPublicKeyInfo` has its required parameters, and the key its format. Accepts unknown
/// algorithms.
fn is_public_key(info: &[u8], strictness: Strictness) -> bool {
    let mut fields = contents(info);
    let (Some(algorithm), Some([_, key @ ..])) = (fields.next(), fields.next()) else {
        return false;
    };
    let mut algorithm = elements(algorithm);
    let (identifier, parameters) = (algorithm.next(), algorithm.next());
    let has_only = |key_bytes| parameters.is_none() && key.len() == key_bytes;
    match identifier.and_then(|identifier| identifier.get(2..)) {
        Some(RSA) => {
            let has_parameters = match strictness {
                Strictness::Exact => parameters == Some(&[NULL, 0]),
                Strictness::AsFound => matches!(parameters, None | Some([NULL, 0])),
            };
            has_parameters && RSA_PUBLIC_KEY.is_of(key, strictness)
        }
        Some(EC) => match parameters {
            Some([OBJECT_IDENTIFIER, _, curve @ ..]) => is_point(curve, key),
            // Explicit curve parameters, which some programs write.
            Some(_) => strictness == Strictness::AsFound,
            None => false,
        },
        Some(X25519 | ED25519) => has_only(32),
        Some(X448) => has_only(56),
        Some(ED448) => has_only(57),
        _ => true,
    }
}

/// Returns the contents of the elements inside an element.
fn contents(element: &[u8]) -> impl Iterator<Item = &[u8]> {
    let content = split_element(element).map_or(&[][..], |(_, content, _)| content);
    elements(content).filter_map(|element| split_element(element).map(|(_, content, _)| content))
}

/// Returns whether a key is a point on the curve. Accepts unknown curves.
fn is_point(curve: &[u8], key: &[u8]) -> bool {
    let Some((_, bytes, algorithm)) = CURVES.iter().find(|(known, ..)| *known == curve) else {
        return true;
    };
    match key {
        [0x02 | 0x03, x @ ..] => x.len() == *bytes,
        [0x04, ..] => ParsedPublicKey::new(*algorithm, key).is_ok(),
        [0x06 | 0x07, coordinates @ ..] => coordinates.len() == 2 * bytes,
        _ => false,
    }
}

static RSA_PUBLIC_KEY: Shape = sequence(&[
    Field::required(&Shape::Primitive(INTEGER, is_unsigned)),
    Field::required(&Shape::Primitive(INTEGER, is_unsigned)),
]);

/// Curves: the object identifier, the length of a coordinate in bytes, and the check of a point.
static CURVES: [(&[u8], usize, &EcdsaVerificationAlgorithm); 3] = [
    (
        &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07],
        32,
        &ECDSA_P256_SHA256_ASN1,
    ),
    (&[0x2b, 0x81, 0x04, 0x00, 0x22], 48, &ECDSA_P384_SHA384_ASN1),
    (&[0x2b, 0x81, 0x04, 0x00, 0x23], 66, &ECDSA_P521_SHA512_ASN1),
];

const RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01];
const EC: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01];
const X25519: &[u8] = &[0x2b, 0x65, 0x6e];
const X448: &[u8] = &[0x2b, 0x65, 0x6f];
const ED25519: &[u8] = &[0x2b, 0x65, 0x70];
const ED448: &[u8] = &[0x2b, 0x65, 0x71];
