//! The body of a certificate (`TBSCertificate`).

use der::{
    Decode, Encode, Reader, SliceReader, Tag,
    asn1::{Any, AnyRef, BitString},
};
use keywright_plugin_support::Failure;
use rcgen::{
    BasicConstraints, CertificateParams, IsCa, KeyIdMethod, PKCS_RSA_SHA256, PublicKeyData,
    SerialNumber, SignatureAlgorithm, SigningKey,
};
use sha1::{Digest, Sha1};
use time::{Duration, OffsetDateTime};

use crate::{issuer::Issuer, parameters::Parameters};

/// What stands in a body beside what was asked for.
#[derive(Clone, Copy)]
pub struct Circumstances<'a> {
    /// The certificate's public key: DER, PKCS#1.
    pub public_key: &'a [u8],
    /// The serial number; read as a positive number, most significant octet first.
    pub serial_number: [u8; SERIAL_NUMBER_BYTES],
    /// When the certificate begins to be valid, in seconds since 1970-01-01T00:00:00Z.
    pub now_seconds: u64,
}

/// Writes the body of a certificate; without an issuer, of one that signs itself with SHA-256 and RSA.
///
/// # Errors
///
/// [`Failure::Other`], when the time of the call or what the issuer says of itself can't be written.
pub fn tbs_certificate(
    parameters: &Parameters,
    circumstances: Circumstances<'_>,
    issuer: Option<&impl Issuer>,
) -> Result<Vec<u8>, Failure> {
    let mut wanted = wanted(parameters, circumstances)?;
    let key = Unsigned {
        public_key: circumstances.public_key,
    };
    let Some(issuer) = issuer else {
        wanted.use_authority_key_identifier_extension = true;
        return body(&wanted, &key, &rcgen::Issuer::from_params(&wanted, &key));
    };
    let mut authority = CertificateParams::default();
    if let Some(identifier) = issuer.subject_key_identifier() {
        authority.key_identifier_method = KeyIdMethod::PreSpecified(identifier);
        wanted.use_authority_key_identifier_extension = true;
    }
    let body = body(&wanted, &key, &rcgen::Issuer::from_params(&authority, &key))?;
    with_issuer(&body, &issuer.signature_algorithm(), &issuer.subject()).map_err(not_written)
}

/// Puts a body and the signature over it together into a certificate.
///
/// # Errors
///
/// [`Failure::Other`], when the body is none.
pub fn certificate(tbs_certificate: &[u8], signature: &[u8]) -> Result<Vec<u8>, Failure> {
    let assembled = || {
        let algorithm = fields(tbs_certificate)?
            .nth(SIGNATURE_FIELD)
            .transpose()?
            .unwrap_or(&[]);
        let signature = BitString::from_bytes(signature)?.to_der()?;
        sequence(&[tbs_certificate, algorithm, &signature])
    };
    assembled().map_err(not_written)
}

/// What rcgen is to write.
fn wanted(
    parameters: &Parameters,
    circumstances: Circumstances<'_>,
) -> Result<CertificateParams, Failure> {
    let (not_before, not_after) = validity(circumstances.now_seconds, parameters.duration_days)?;
    let mut wanted = CertificateParams::default();
    wanted.not_before = not_before;
    wanted.not_after = not_after;
    wanted.serial_number = Some(SerialNumber::from_slice(&circumstances.serial_number));
    wanted.distinguished_name = parameters
        .subject
        .distinguished_name()
        .map_err(not_written)?;
    wanted.subject_alt_names = parameters
        .alternative_names
        .iter()
        .map(|name| name.general_name().map_err(not_written))
        .collect::<Result<_, _>>()?;
    wanted.key_usages = parameters
        .key_usage
        .iter()
        .map(|usage| usage.purpose())
        .collect();
    wanted.extended_key_usages = parameters
        .extended_key_usage
        .iter()
        .map(|usage| usage.purpose())
        .collect();
    wanted.is_ca = if parameters.is_ca {
        IsCa::Ca(BasicConstraints::Unconstrained)
    } else {
        IsCa::ExplicitNoCa
    };
    wanted.key_identifier_method =
        KeyIdMethod::PreSpecified(Sha1::digest(circumstances.public_key).to_vec());
    Ok(wanted)
}

fn validity(
    now_seconds: u64,
    duration_days: u32,
) -> Result<(OffsetDateTime, OffsetDateTime), Failure> {
    let not_before = i64::try_from(now_seconds)
        .ok()
        .and_then(|seconds| OffsetDateTime::from_unix_timestamp(seconds).ok());
    let not_after =
        not_before.and_then(|time| time.checked_add(Duration::days(duration_days.into())));
    not_before
        .zip(not_after)
        .ok_or_else(|| Failure::Other("the certificate would last beyond the year 9999".to_owned()))
}

/// A key for rcgen that signs nothing: of the certificate that rcgen makes with it, only the body is used.
struct Unsigned<'a> {
    public_key: &'a [u8],
}

impl PublicKeyData for Unsigned<'_> {
    fn der_bytes(&self) -> &[u8] {
        self.public_key
    }

    fn algorithm(&self) -> &'static SignatureAlgorithm {
        &PKCS_RSA_SHA256
    }
}

impl SigningKey for Unsigned<'_> {
    fn sign(&self, _message: &[u8]) -> Result<Vec<u8>, rcgen::Error> {
        Ok(Vec::new())
    }
}

fn body(
    wanted: &CertificateParams,
    key: &Unsigned<'_>,
    issuer: &rcgen::Issuer<'_, &Unsigned<'_>>,
) -> Result<Vec<u8>, Failure> {
    let certificate = wanted.signed_by(key, issuer).map_err(not_written)?;
    let body = fields(certificate.der()).and_then(|mut fields| fields.next().transpose());
    Ok(body.map_err(not_written)?.unwrap_or(&[]).to_vec())
}

/// Replaces the algorithm and the issuer's name within a body.
fn with_issuer(body: &[u8], algorithm: &[u8], name: &[u8]) -> der::Result<Vec<u8>> {
    let mut replaced = fields(body)?.collect::<der::Result<Vec<_>>>()?;
    for (field, bytes) in [(SIGNATURE_FIELD, algorithm), (ISSUER_FIELD, name)] {
        if let Some(place) = replaced.get_mut(field) {
            *place = bytes;
        }
    }
    sequence(&replaced)
}

/// The fields of a DER sequence, each as it is encoded.
pub(crate) fn fields(sequence: &[u8]) -> der::Result<impl Iterator<Item = der::Result<&[u8]>>> {
    let mut reader = SliceReader::new(AnyRef::from_der(sequence)?.value())?;
    Ok(std::iter::from_fn(move || {
        (!reader.is_finished()).then(|| reader.tlv_bytes())
    }))
}

fn sequence(fields: &[&[u8]]) -> der::Result<Vec<u8>> {
    Any::new(Tag::Sequence, fields.concat())?.to_der()
}

fn not_written(error: impl std::fmt::Display) -> Failure {
    Failure::Other(format!("the certificate can't be written: {error}"))
}

/// The octets of a serial number.
pub const SERIAL_NUMBER_BYTES: usize = 20;

/// The places of two fields within a body: after the version and the serial number.
const SIGNATURE_FIELD: usize = 2;
const ISSUER_FIELD: usize = 3;
