//! The body of a certificate (`TBSCertificate`).

use der::{
    Decode, Encode, Reader, SliceReader, Tag,
    asn1::{Any, AnyRef, BitString},
};
use keywright_plugin_support::Failure;
use rcgen::{
    BasicConstraints, CertificateParams, IsCa, KeyIdMethod, PublicKeyData, SerialNumber,
    SignatureAlgorithm, SigningKey,
};
use sha1::{Digest, Sha1};
use time::{Duration, OffsetDateTime};

use crate::{issuer::Issuer, parameters::Parameters};

/// What stands in a body beside what was asked for.
#[derive(Clone, Copy)]
pub struct Circumstances<'a> {
    /// The bits of the certificate's public key.
    pub public_key: &'a [u8],
    /// The serial number; read as a positive number, most significant octet first.
    pub serial_number: [u8; SERIAL_NUMBER_BYTES],
    /// When the certificate begins to be valid, in seconds since 1970-01-01T00:00:00Z.
    pub now_seconds: u64,
}

/// Writes the body of a certificate; without an issuer, of one that signs itself with the algorithm of its key.
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
        algorithm: parameters.key_type.algorithm(),
    };
    let subject = parameters.kept.subject();
    let replaced = |body: Vec<u8>, parts: [(usize, Option<&[u8]>); 3]| {
        with_fields(&body, &parts).map_err(not_written)
    };
    let Some(issuer) = issuer else {
        wanted.use_authority_key_identifier_extension = true;
        let body = written_body(&wanted, &key, &rcgen::Issuer::from_params(&wanted, &key))?;
        return replaced(
            body,
            [
                (SIGNATURE_FIELD, None),
                (ISSUER_FIELD, subject),
                (SUBJECT_FIELD, subject),
            ],
        );
    };
    let mut authority = CertificateParams::default();
    if let Some(identifier) = issuer.subject_key_identifier() {
        authority.key_identifier_method = KeyIdMethod::PreSpecified(identifier);
        wanted.use_authority_key_identifier_extension = true;
    }
    let body = written_body(&wanted, &key, &rcgen::Issuer::from_params(&authority, &key))?;
    replaced(
        body,
        [
            (SIGNATURE_FIELD, Some(&issuer.signature_algorithm())),
            (ISSUER_FIELD, Some(&issuer.subject())),
            (SUBJECT_FIELD, subject),
        ],
    )
}

/// A body with everything that the parameters say, under a key and a number of no meaning.
///
/// # Errors
///
/// [`Failure::Other`], when the parameters can't be written.
pub(crate) fn sample(parameters: &Parameters) -> Result<Vec<u8>, Failure> {
    let circumstances = Circumstances {
        public_key: &[0],
        serial_number: [1; SERIAL_NUMBER_BYTES],
        now_seconds: 0,
    };
    let wanted = wanted(parameters, circumstances)?;
    let key = Unsigned {
        public_key: circumstances.public_key,
        algorithm: parameters.key_type.algorithm(),
    };
    written_body(&wanted, &key, &rcgen::Issuer::from_params(&wanted, &key))
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
    if !parameters.kept.has_alternative_names() {
        wanted.subject_alt_names = parameters
            .alternative_names
            .iter()
            .map(|name| name.general_name().map_err(not_written))
            .collect::<Result<_, _>>()?;
    }
    if !parameters.kept.has_key_usage() {
        wanted.key_usages = parameters
            .key_usage
            .iter()
            .map(|usage| usage.purpose())
            .collect();
    }
    if !parameters.kept.has_extended_key_usage() {
        wanted.extended_key_usages = parameters
            .extended_key_usage
            .iter()
            .map(|usage| usage.purpose())
            .collect();
    }
    wanted.custom_extensions = parameters.kept.extensions().map_err(not_written)?;
    wanted.is_ca = if parameters.is_ca {
        IsCa::Ca(parameters.kept.path_length().map_or(
            BasicConstraints::Unconstrained,
            BasicConstraints::Constrained,
        ))
    } else {
        IsCa::ExplicitNoCa
    };
    wanted.key_identifier_method =
        KeyIdMethod::PreSpecified(Sha1::digest(circumstances.public_key).to_vec());
    Ok(wanted)
}

/// From the time of the call on for so many days, but not beyond the last second that a certificate can name.
fn validity(
    now_seconds: u64,
    duration_days: u32,
) -> Result<(OffsetDateTime, OffsetDateTime), Failure> {
    let at = |seconds| OffsetDateTime::from_unix_timestamp(seconds).ok();
    let not_before = i64::try_from(now_seconds).ok().and_then(at);
    let not_after = not_before.and_then(|time| {
        time.checked_add(Duration::days(duration_days.into()))
            .or_else(|| at(LAST_SECOND))
    });
    not_before
        .zip(not_after)
        .ok_or_else(|| Failure::Other("the certificate would begin after the year 9999".to_owned()))
}

/// A key for rcgen that signs nothing: of the certificate that rcgen makes with it, only the body is used.
struct Unsigned<'a> {
    public_key: &'a [u8],
    algorithm: &'static SignatureAlgorithm,
}

impl PublicKeyData for Unsigned<'_> {
    fn der_bytes(&self) -> &[u8] {
        self.public_key
    }

    fn algorithm(&self) -> &'static SignatureAlgorithm {
        self.algorithm
    }
}

impl SigningKey for Unsigned<'_> {
    fn sign(&self, _message: &[u8]) -> Result<Vec<u8>, rcgen::Error> {
        Ok(Vec::new())
    }
}

fn written_body(
    wanted: &CertificateParams,
    key: &Unsigned<'_>,
    issuer: &rcgen::Issuer<'_, &Unsigned<'_>>,
) -> Result<Vec<u8>, Failure> {
    let certificate = wanted.signed_by(key, issuer).map_err(not_written)?;
    Ok(body(certificate.der()).map_err(not_written)?.to_vec())
}

/// Replaces fields of a body with bytes that are written nowhere else, where there are such.
fn with_fields(body: &[u8], parts: &[(usize, Option<&[u8]>)]) -> der::Result<Vec<u8>> {
    let mut replaced = fields(body)?.collect::<der::Result<Vec<_>>>()?;
    for (field, bytes) in parts {
        if let (Some(place), Some(bytes)) = (replaced.get_mut(*field), bytes) {
            *place = bytes;
        }
    }
    sequence(&replaced)
}

/// The body of a certificate, as it is encoded.
pub(crate) fn body(certificate: &[u8]) -> der::Result<&[u8]> {
    Ok(fields(certificate)?.next().transpose()?.unwrap_or(&[]))
}

/// The issuer and the subject of a body, each as it is encoded.
pub(crate) fn names(body: &[u8]) -> der::Result<(&[u8], &[u8])> {
    let fields = fields(body)?.collect::<der::Result<Vec<_>>>()?;
    // A certificate of version 1 does not say so.
    let has_version = fields
        .first()
        .is_some_and(|field| field.first() == Some(&VERSION_TAG));
    let absent = usize::from(!has_version);
    let at = |place: usize| fields.get(place - absent).copied().unwrap_or(&[]);
    Ok((at(ISSUER_FIELD), at(SUBJECT_FIELD)))
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

pub(crate) fn not_written(error: impl std::fmt::Display) -> Failure {
    Failure::Other(format!("the certificate can't be written: {error}"))
}

/// The octets of a serial number.
pub const SERIAL_NUMBER_BYTES: usize = 20;

/// The places of fields within a body: after the version and the serial number, and behind the validity.
const SIGNATURE_FIELD: usize = 2;
const ISSUER_FIELD: usize = 3;
const SUBJECT_FIELD: usize = 5;

/// The tag of a version.
const VERSION_TAG: u8 = 0xa0;

/// 9999-12-31T23:59:59Z, in seconds since 1970: the end of what does not end (RFC 5280, section 4.1.2.5).
const LAST_SECOND: i64 = 253_402_300_799;
