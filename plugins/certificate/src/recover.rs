//! Recovers the parameters of a stored certificate.

use der::Decode;
use keywright_plugin_support::{Failure, Fields, Recovered, Violation, canonical, to_json};
use x509_cert::{
    certificate::{CertificateInner, Raw, TbsCertificateInner},
    ext::pkix::{self, BasicConstraints},
};

use crate::{
    alternative_name::AlternativeName,
    kept::{self, Kept},
    parameters::Parameters,
    pem,
    public_key::PublicKey,
    subject::Subject,
    tbs,
    usage::{ExtendedKeyUsage, KeyUsage},
};

/// Returns the stored parameters. Without stored parameters, reads them from the certificate.
///
/// A certificate does not contain the name of the credential that signed it, so `ca` is omitted and the host adds it. The subject,
/// the usages and the alternative names are each kept in [`Kept`] if parameters can't express them or would encode them
/// differently. The constraints of a CA are also kept. The result is complete if only encodings and constraints were kept, and the
/// key length can be requested. Extensions without a corresponding parameter do not affect this.
///
/// # Errors
///
/// - [`Failure::InvalidValue`] if the certificate is missing or malformed, keys of its type can't be generated, or a part of the
///   certificate would be lost.
/// - [`Failure::Other`] if the stored value or parameters are malformed.
pub fn recover(parameters: Option<String>, value: &str) -> Result<Recovered, Failure> {
    if let Some(parameters) = parameters {
        let stored: Parameters = canonical(&parameters)?;
        let is_complete = stored
            .kept
            .is_expressed_by(&stored)
            .map_err(tbs::not_encoded)?;
        return Ok(Recovered {
            parameters,
            is_complete,
        });
    }
    let text = Fields::parse(value)
        .and_then(|mut fields| fields.take_filled_text(CERTIFICATE))
        .map_err(|_| Failure::Other("the stored value is not a certificate".to_owned()))?
        .ok_or_else(|| refused("is missing"))?;
    let der = pem::first_certificate(&text).ok_or_else(|| refused(UNREADABLE))?;
    let certificate = CertificateInner::<Raw>::from_der(&der).map_err(|_| refused(UNREADABLE))?;
    let key =
        PublicKey::of(certificate.tbs_certificate().subject_public_key_info()).map_err(refused)?;
    let body = tbs::body(&der).map_err(unreadable)?;
    let (mut parameters, is_complete) = parameters_of(&certificate, body, &key)?;
    parameters.kept = Kept::in_addition_to(&parameters, certificate.tbs_certificate(), body)?;
    Ok(Recovered {
        parameters: to_json(&parameters)?,
        is_complete,
    })
}

fn refused(rule: impl Into<String>) -> Failure {
    Failure::InvalidValue(Violation::of(CERTIFICATE, rule))
}

fn unreadable(_: der::Error) -> Failure {
    refused(UNREADABLE)
}

/// Reads the parameters from a certificate. Returns whether the parameters express all of it.
fn parameters_of(
    certificate: &CertificateInner<Raw>,
    body: &[u8],
    key: &PublicKey,
) -> Result<(Parameters, bool), Failure> {
    let tbs = certificate.tbs_certificate();
    let (key_type, has_length) = key.key_type();
    let (subject, has_whole_subject) = Subject::of_name(tbs.subject());
    let (alternative_names, has_all_names) = kept::extension(tbs, AlternativeName::EXTENSION)
        .map_or(Ok((Vec::new(), true)), AlternativeName::of_extension)
        .map_err(unreadable)?;
    let (extended_key_usage, has_all_usages) = kept::extension(tbs, ExtendedKeyUsage::EXTENSION)
        .map_or(Ok((Vec::new(), true)), ExtendedKeyUsage::of_extension)
        .map_err(unreadable)?;
    let parameters = Parameters {
        subject,
        alternative_names,
        key_usage: tbs
            .get_extension::<pkix::KeyUsage>()
            .map_err(unreadable)?
            .iter()
            .flat_map(|(_, usage)| KeyUsage::asserted(usage))
            .collect(),
        extended_key_usage,
        key_type,
        duration_days: duration_days(tbs),
        ca: None,
        is_ca: tbs
            .get_extension::<BasicConstraints>()
            .map_err(unreadable)?
            .is_some_and(|(_, basic)| basic.ca),
        self_sign: key.has_signed(
            certificate.signature_algorithm(),
            body,
            certificate.signature().as_bytes().unwrap_or(&[]),
        ),
        kept: Kept::default(),
    };
    let is_complete = has_length && has_whole_subject && has_all_names && has_all_usages;
    Ok((parameters, is_complete))
}

/// Returns the validity in whole days, at least one.
fn duration_days(tbs: &TbsCertificateInner<Raw>) -> u32 {
    let validity = tbs.validity();
    let duration = validity
        .not_after
        .to_unix_duration()
        .saturating_sub(validity.not_before.to_unix_duration());
    u32::try_from(duration.as_secs() / SECONDS_A_DAY)
        .unwrap_or(u32::MAX)
        .max(1)
}

const CERTIFICATE: &str = "certificate";
const UNREADABLE: &str =
    "must be a PEM-encoded X.509 certificate with well-formed extensions, valid from 1970 or later";
const SECONDS_A_DAY: u64 = 24 * 60 * 60;
