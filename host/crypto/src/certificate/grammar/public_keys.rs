//! Public keys, and the required parameters of their algorithms (RFC 3279, RFC 5480, RFC 8410).

use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_ASN1, ECDSA_P384_SHA384_ASN1, ECDSA_P521_SHA512_ASN1,
    EcdsaVerificationAlgorithm, ParsedPublicKey,
};

use super::{
    super::{
        der::{
            BIT_STRING, INTEGER, NULL, OBJECT_IDENTIFIER, Strictness, elements, is_unsigned,
            is_whole_bytes, split_element,
        },
        shape::{Field, Shape, sequence},
    },
    ALGORITHM,
};

/// `SubjectPublicKeyInfo`.
pub(super) static PUBLIC_KEY_INFO: Shape = sequence(&[
    Field::required(&ALGORITHM),
    Field::required(&Shape::Primitive(BIT_STRING, is_whole_bytes)),
]);

/// Returns whether the algorithm of a `SubjectPublicKeyInfo` has its required parameters, and the key its format. Accepts unknown
/// algorithms.
pub(super) fn is_public_key(info: &[u8], strictness: Strictness) -> bool {
    let mut fields = contents(info);
    let (Some(algorithm), Some([_, key @ ..])) = (fields.next(), fields.next()) else {
        return false;
    };
    let mut algorithm = elements(algorithm);
    let (identifier, parameters) = (algorithm.next(), algorithm.next());
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
        Some(X25519 | ED25519) => parameters.is_none() && key.len() == 32,
        Some(X448) => parameters.is_none() && key.len() == 56,
        Some(ED448) => parameters.is_none() && key.len() == 57,
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
        [0x04, coordinates @ ..] => {
            coordinates.len() == 2 * bytes && ParsedPublicKey::new(*algorithm, key).is_ok()
        }
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
