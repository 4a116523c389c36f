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

/// The contents of a body that do not come from parameters.
#[derive(Clone, Copy)]
pub struct Circumstances<'a> {
    /// The encoded public key of the certificate.
    pub public_key: &'a [u8],
    /// The serial number as a positive number, most significant octet first.
    pub serial_number: [u8; SERIAL_NUMBER_BYTES],
    /// The start of the validity, in seconds since 1970-01-01T00:00:00Z.
    pub now_seconds: u64,
}

/// Encodes the body of a certificate. Without an issuer, the certificate is self-signed with the algorithm of its key.
///
/// # Errors
///
/// [`Failure::Other`] if the time of the call, or the issuer's name or algorithm, can't be encoded.
pub fn tbs_certificate(
    parameters: &Parameters,
    circumstances: Circumstances<'_>,
    issuer: Option<&Issuer<'_>>,
) -> Result<Vec<u8>, Failure> {
    let mut wanted = wanted(parameters, circumstances)?;
    let key = Unsigned {
        public_key: circumstances.public_key,
        algorithm: parameters.key_type.algorithm(),
    };
    let subject = parameters.kept.subject();
    let replaced = |body: Vec<u8>, parts: [(usize, Option<&[u8]>); 3]| {
        with_fields(&body, &parts).map_err(not_encoded)
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
    if let Some(identifier) = &issuer.subject_key_identifier {
        authority.key_identifier_method = KeyIdMethod::PreSpecified(identifier.clone());
        wanted.use_authority_key_identifier_extension = true;
    }
    let body = written_body(&wanted, &key, &rcgen::Issuer::from_params(&authority, &key))?;
    replaced(
        body,
        [
            (SIGNATURE_FIELD, Some(&issuer.signature_algorithm)),
            (ISSUER_FIELD, Some(&issuer.subject)),
            (SUBJECT_FIELD, subject),
        ],
    )
}

/// Encodes a body with these parameters, and a dummy key and serial number.
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

/// Assembles a certificate from a body and its signature.
pub fn certificate(tbs_certificate: &[u8], signature: &[u8]) -> Result<Vec<u8>, Failure> {
    let assembled = || {
        let algorithm = fields(tbs_certificate)?
            .nth(SIGNATURE_FIELD)
            .transpose()?
            .unwrap_or(&[]);
        let signature = BitString::from_bytes(signature)?.to_der()?;
        sequence(&[tbs_certificate, algorithm, &signature])
    };
    assembled().map_err(not_encoded)
}

/// Converts the parameters to rcgen's parameters.
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
        .map_err(not_encoded)?;
    if parameters.kept.alternative_names.is_none() {
        wanted.subject_alt_names = parameters
            .alternative_names
            .iter()
            .map(|name| name.general_name().map_err(not_encoded))
            .collect::<Result<_, _>>()?;
    }
    if parameters.kept.key_usage.is_none() {
        wanted.key_usages = parameters
            .key_usage
            .iter()
            .map(|usage| usage.purpose())
            .collect();
    }
    if parameters.kept.extended_key_usage.is_none() {
        wanted.extended_key_usages = parameters
            .extended_key_usage
            .iter()
            .map(|usage| usage.purpose())
            .collect();
    }
    wanted.custom_extensions = parameters.kept.extensions().map_err(not_encoded)?;
    wanted.is_ca = if parameters.is_ca {
        IsCa::Ca(parameters.kept.path_length.map_or(
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

/// Returns the validity: from the time of the call for this number of days, but not after the last second that a certificate can
/// represent.
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
    not_before.zip(not_after).ok_or_else(|| {
        Failure::Other("the validity of the certificate would start after the year 9999".to_owned())
    })
}

/// A key for rcgen that returns an empty signature: only the body of rcgen's certificate is used.
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
    let certificate = wanted.signed_by(key, issuer).map_err(not_encoded)?;
    Ok(body(certificate.der()).map_err(not_encoded)?.to_vec())
}

/// Replaces the given fields of a body.
fn with_fields(body: &[u8], parts: &[(usize, Option<&[u8]>)]) -> der::Result<Vec<u8>> {
    let mut replaced = fields(body)?.collect::<der::Result<Vec<_>>>()?;
    for (field, bytes) in parts {
        if let (Some(slot), Some(bytes)) = (replaced.get_mut(*field), bytes) {
            *slot = bytes;
        }
    }
    sequence(&replaced)
}

/// Returns the encoded body of a certificate.
pub(crate) fn body(certificate: &[u8]) -> der::Result<&[u8]> {
    Ok(fields(certificate)?.next().transpose()?.unwrap_or(&[]))
}

/// Returns the encoded issuer and subject of a body.
pub(crate) fn names(body: &[u8]) -> der::Result<(&[u8], &[u8])> {
    let fields = fields(body)?.collect::<der::Result<Vec<_>>>()?;
    // Certificates of version 1 omit the version.
    let has_version = fields
        .first()
        .is_some_and(|field| field.first() == Some(&VERSION_TAG));
    let absent = usize::from(!has_version);
    let at = |index: usize| fields.get(index - absent).copied().unwrap_or(&[]);
    Ok((at(ISSUER_FIELD), at(SUBJECT_FIELD)))
}

/// Returns the encoded fields of a DER sequence.
pub(crate) fn fields(sequence: &[u8]) -> der::Result<impl Iterator<Item = der::Result<&[u8]>>> {
    let mut reader = SliceReader::new(AnyRef::from_der(sequence)?.value())?;
    Ok(std::iter::from_fn(move || {
        (!reader.is_finished()).then(|| reader.tlv_bytes())
    }))
}

fn sequence(fields: &[&[u8]]) -> der::Result<Vec<u8>> {
    Any::new(Tag::Sequence, fields.concat())?.to_der()
}

pub(crate) fn not_encoded(error: impl std::fmt::Display) -> Failure {
    Failure::Other(format!("could not encode the certificate: {error}"))
}

/// The number of octets in a serial number.
pub const SERIAL_NUMBER_BYTES: usize = 20;

/// Indexes of fields in a body, which starts with the version and the serial number.
const SIGNATURE_FIELD: usize = 2;
const ISSUER_FIELD: usize = 3;
const SUBJECT_FIELD: usize = 5;

const VERSION_TAG: u8 = 0xa0;

/// 9999-12-31T23:59:59Z, in seconds since 1970: the end of validity without expiration (RFC 5280, section 4.1.2.5).
const LAST_SECOND: i64 = 253_402_300_799;
