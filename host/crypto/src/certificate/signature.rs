//! Verifies the signatures of certificates.

use aws_lc_rs::{
    digest::{Algorithm, Digest, SHA1_FOR_LEGACY_USE_ONLY, SHA224, SHA256, SHA384, SHA512, digest},
    signature::{
        ECDSA_P256_SHA256_ASN1, ECDSA_P384_SHA384_ASN1, ECDSA_P521_SHA512_ASN1, ED25519,
        EcdsaVerificationAlgorithm, UnparsedPublicKey, VerificationAlgorithm as _,
    },
};
use rsa::{Pkcs1v15Sign, Pss, RsaPublicKey, pkcs1::DecodeRsaPublicKey as _};
use sha1::Sha1;
use sha2::{Sha224, Sha256, Sha384, Sha512};
use x509_parser::{
    asn1_rs::{Oid, oid},
    certificate::X509Certificate,
    objects::{oid_registry, oid2sn},
    oid_registry::{
        OID_EC_P256, OID_HASH_SHA1, OID_KEY_TYPE_EC_PUBLIC_KEY, OID_NIST_EC_P384, OID_NIST_EC_P521,
        OID_NIST_HASH_SHA256, OID_NIST_HASH_SHA384, OID_NIST_HASH_SHA512, OID_PKCS1_RSAENCRYPTION,
        OID_PKCS1_RSASSAPSS, OID_PKCS1_SHA1WITHRSA, OID_PKCS1_SHA224WITHRSA,
        OID_PKCS1_SHA256WITHRSA, OID_PKCS1_SHA384WITHRSA, OID_PKCS1_SHA512WITHRSA,
        OID_SHA1_WITH_RSA, OID_SIG_ECDSA_WITH_SHA224, OID_SIG_ECDSA_WITH_SHA256,
        OID_SIG_ECDSA_WITH_SHA384, OID_SIG_ECDSA_WITH_SHA512, OID_SIG_ED25519,
    },
    signature_algorithm::RsaSsaPssParams,
    x509::{AlgorithmIdentifier, SubjectPublicKeyInfo},
};

/// The reason why a signature can't be verified.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Unverifiable {
    /// The signature algorithm or its parameters are not supported.
    #[error(
        "was not checked: the signature algorithm {0} can't be verified; use RSA or ECDSA with SHA-1 or SHA-2, or Ed25519"
    )]
    Algorithm(String),
    /// The length, the exponent or the curve of the signer's key is not supported.
    #[error(
        "was not checked: no signature can be verified with the signer's key; use an RSA key of 1024 to 8192 bits with an \
         exponent of at most 33 bits, an ECDSA key on P-256, P-384 or P-521, or an Ed25519 key"
    )]
    Key,
}

/// Returns whether the certificate's signature is by this key. Does not check names and validity.
///
/// The time is bounded: RSA keys of more than 8192 bits and exponents of more than 33 bits are rejected before use.
///
/// # Errors
/// If the algorithm or the key is not supported, so the signature can't be verified.
pub(super) fn is_made_by(
    certificate: &X509Certificate<'_>,
    signer: &SubjectPublicKeyInfo<'_>,
) -> Result<bool, Unverifiable> {
    let message = certificate.tbs_certificate.as_ref();
    let signature = certificate.signature_value.data.as_ref();
    let scheme = Scheme::of(&certificate.signature_algorithm)?;
    let key = signer.subject_public_key.data.as_ref();
    let key_algorithm = &signer.algorithm.algorithm;
    match scheme {
        Scheme::RsaPkcs1(is_signed) if *key_algorithm == OID_PKCS1_RSAENCRYPTION => {
            Ok(is_signed(&rsa_key(key)?, message, signature))
        }
        Scheme::RsaPss(is_signed, salt_bytes)
            if [OID_PKCS1_RSAENCRYPTION, OID_PKCS1_RSASSAPSS].contains(key_algorithm) =>
        {
            Ok(is_signed(&rsa_key(key)?, salt_bytes, message, signature))
        }
        Scheme::Ecdsa(hash) if *key_algorithm == OID_KEY_TYPE_EC_PUBLIC_KEY => {
            let curve = Curve::of(signer).ok_or(Unverifiable::Key)?;
            Ok(curve.verify(key, &digest(hash, message), signature))
        }
        Scheme::Ed25519 if *key_algorithm == OID_SIG_ED25519 => {
            let key = UnparsedPublicKey::new(&ED25519, key);
            Ok(key.verify(message, signature).is_ok())
        }
        // The key has another algorithm.
        _ => Ok(false),
    }
}

#[derive(Clone, Copy)]
enum Scheme {
    Ecdsa(&'static Algorithm),
    Ed25519,
    RsaPkcs1(IsSigned),
    /// The verification with the hash, and the length of the salt in bytes.
    RsaPss(IsSignedWithSalt, usize),
}

/// Returns whether a signature of a message is by a key.
type IsSigned = fn(&RsaPublicKey, &[u8], &[u8]) -> bool;

/// As [`IsSigned`], after the length of the salt.
type IsSignedWithSalt = fn(&RsaPublicKey, usize, &[u8], &[u8]) -> bool;

impl Scheme {
    fn of(algorithm: &AlgorithmIdentifier<'_>) -> Result<Self, Unverifiable> {
        let identifier = &algorithm.algorithm;
        if *identifier == OID_PKCS1_RSASSAPSS {
            return Self::of_pss(algorithm).ok_or_else(|| {
                Unverifiable::Algorithm("RSASSA-PSS with these parameters".to_owned())
            });
        }
        SCHEMES
            .iter()
            .find(|(known, _)| known == identifier)
            .map(|(_, scheme)| *scheme)
            .ok_or_else(|| Unverifiable::Algorithm(name_of(identifier)))
    }

    /// Parses the parameters of RSASSA-PSS. The message and the mask must use the same hash.
    fn of_pss(algorithm: &AlgorithmIdentifier<'_>) -> Option<Self> {
        let parameters = RsaSsaPssParams::try_from(algorithm.parameters.as_ref()?).ok()?;
        let mask = parameters.mask_gen_algorithm().ok()?;
        let hash = parameters.hash_algorithm_oid();
        let salt_bytes = usize::try_from(parameters.salt_length()).ok()?;
        let is_known = mask.mgf == MGF1 && mask.hash == *hash && parameters.trailer_field() == 1;
        let (_, hash) = PSS_HASHES.iter().find(|(known, _)| known == hash)?;
        is_known.then_some(Self::RsaPss(*hash, salt_bytes))
    }
}

fn pkcs1<H: sha2::Digest + rsa::pkcs8::AssociatedOid>(
    key: &RsaPublicKey,
    message: &[u8],
    signature: &[u8],
) -> bool {
    let verified = key.verify(Pkcs1v15Sign::new::<H>(), &H::digest(message), signature);
    verified.is_ok()
}

fn pss<H: sha2::Digest + sha2::digest::FixedOutputReset>(
    key: &RsaPublicKey,
    salt: usize,
    message: &[u8],
    signature: &[u8],
) -> bool {
    let scheme = Pss::<H>::new_with_salt(salt);
    key.verify(scheme, &H::digest(message), signature).is_ok()
}

/// Parses a key of 1024 to 8192 bits, with an odd exponent of at least 3 and at most 33 bits.
fn rsa_key(key: &[u8]) -> Result<RsaPublicKey, Unverifiable> {
    RsaPublicKey::from_pkcs1_der(key).map_err(|_| Unverifiable::Key)
}

/// The algorithm that verifies signatures on a curve, and the hash whose length it expects: the length of the curve's order (for
/// P-521, the longest hash).
struct Curve {
    identifier: Oid<'static>,
    algorithm: &'static EcdsaVerificationAlgorithm,
    hash: &'static Algorithm,
}

impl Curve {
    fn of(key: &SubjectPublicKeyInfo<'_>) -> Option<&'static Self> {
        let named = curve(key)?;
        CURVES.iter().find(|curve| curve.identifier == named)
    }

    /// Verifies a signature of a hash of any length. ECDSA signs the leftmost bits of the hash, at most as many as the order of the
    /// curve (FIPS 186-5, section 6.4.2). So a longer hash is truncated, and a shorter one padded with leading zeros.
    fn verify(&self, key: &[u8], hashed: &Digest, signature: &[u8]) -> bool {
        let hashed = hashed.as_ref();
        let bytes = self.hash.output_len();
        let leftmost = hashed.get(..bytes).unwrap_or(hashed);
        let mut number = vec![0; bytes - leftmost.len()];
        number.extend(leftmost);
        Digest::import_less_safe(&number, self.hash)
            .and_then(|number| self.algorithm.verify_digest_sig(key, &number, signature))
            .is_ok()
    }
}

/// Returns the named curve of an elliptic curve key, if it has one.
pub(super) fn curve<'a>(key: &SubjectPublicKeyInfo<'a>) -> Option<Oid<'a>> {
    key.algorithm.parameters.as_ref()?.clone().oid().ok()
}

/// Returns the name of an algorithm, or its number.
pub(super) fn name_of(identifier: &Oid<'_>) -> String {
    match oid2sn(identifier, oid_registry()) {
        Ok(name) => name.to_owned(),
        Err(_) if identifier.as_bytes().len() <= NUMBER_BYTES_MAX => identifier.to_id_string(),
        Err(_) => "with an unknown number".to_owned(),
    }
}

/// The longest number of an unknown algorithm in error messages, in bytes of DER.
const NUMBER_BYTES_MAX: usize = 32;

static SCHEMES: [(Oid<'_>, Scheme); 12] = [
    (OID_PKCS1_SHA1WITHRSA, Scheme::RsaPkcs1(pkcs1::<Sha1>)),
    (OID_SHA1_WITH_RSA, Scheme::RsaPkcs1(pkcs1::<Sha1>)),
    (OID_PKCS1_SHA224WITHRSA, Scheme::RsaPkcs1(pkcs1::<Sha224>)),
    (OID_PKCS1_SHA256WITHRSA, Scheme::RsaPkcs1(pkcs1::<Sha256>)),
    (OID_PKCS1_SHA384WITHRSA, Scheme::RsaPkcs1(pkcs1::<Sha384>)),
    (OID_PKCS1_SHA512WITHRSA, Scheme::RsaPkcs1(pkcs1::<Sha512>)),
    (ECDSA_WITH_SHA1, Scheme::Ecdsa(&SHA1_FOR_LEGACY_USE_ONLY)),
    (OID_SIG_ECDSA_WITH_SHA224, Scheme::Ecdsa(&SHA224)),
    (OID_SIG_ECDSA_WITH_SHA256, Scheme::Ecdsa(&SHA256)),
    (OID_SIG_ECDSA_WITH_SHA384, Scheme::Ecdsa(&SHA384)),
    (OID_SIG_ECDSA_WITH_SHA512, Scheme::Ecdsa(&SHA512)),
    (OID_SIG_ED25519, Scheme::Ed25519),
];

static PSS_HASHES: [(Oid<'_>, IsSignedWithSalt); 5] = [
    (OID_HASH_SHA1, pss::<Sha1>),
    (NIST_HASH_SHA224, pss::<Sha224>),
    (OID_NIST_HASH_SHA256, pss::<Sha256>),
    (OID_NIST_HASH_SHA384, pss::<Sha384>),
    (OID_NIST_HASH_SHA512, pss::<Sha512>),
];

static CURVES: [Curve; 3] = [
    Curve {
        identifier: OID_EC_P256,
        algorithm: &ECDSA_P256_SHA256_ASN1,
        hash: &SHA256,
    },
    Curve {
        identifier: OID_NIST_EC_P384,
        algorithm: &ECDSA_P384_SHA384_ASN1,
        hash: &SHA384,
    },
    Curve {
        identifier: OID_NIST_EC_P521,
        algorithm: &ECDSA_P521_SHA512_ASN1,
        hash: &SHA512,
    },
];

const ECDSA_WITH_SHA1: Oid<'static> = oid!(1.2.840.10045.4.1);
const MGF1: Oid<'static> = oid!(1.2.840.113549.1.1.8);
const NIST_HASH_SHA224: Oid<'static> = oid!(2.16.840.1.101.3.4.2.4);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_algorithm_is_reported_by_its_number() {
        let number = |bytes: usize| {
            let number = vec![1; bytes];
            name_of(&Oid::new(number.into()))
        };
        assert_eq!(number(3), "0.1.1.1");
        assert!(number(NUMBER_BYTES_MAX).starts_with("0.1.1"));
        assert_eq!(number(NUMBER_BYTES_MAX + 1), "with an unknown number");
    }
}
