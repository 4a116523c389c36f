//! Finding the parameters of a stored certificate.

use der::Decode;
use keywright_plugin_support::{
    Failure, Members, Recovered, Violation, canonical, no_settings, written,
};
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

/// Returns the stored parameters, or else those that the certificate tells.
///
/// A certificate does not tell the name of the credential that signed it: `ca` is left out, and the host, which knows
/// it, puts it in. What of its subject, usages and alternative names can't be expressed in parameters, or would come out in
/// other bytes, is kept in [`Kept`], and so is what limits it. The result is complete when nothing but bytes and limits had
/// to be kept, and the key is of a length that may be asked for. Extensions that no parameter is about do not count.
///
/// # Errors
///
/// [`Failure::InvalidValue`] when there is no certificate, none that can be read, or one with a key like which none can
/// be made, or with what would be lost; [`Failure::Other`] when what is stored is not what this plugin writes; [`Failure::Misconfigured`] for any
/// setting.
pub fn recover(
    parameters: Option<String>,
    value: &str,
    settings: &str,
) -> Result<Recovered, Failure> {
    no_settings(settings)?;
    if let Some(parameters) = parameters {
        let stored: Parameters = canonical(&parameters)?;
        let is_complete = stored.kept.is_told_by(&stored).map_err(tbs::not_written)?;
        return Ok(Recovered {
            parameters,
            is_complete,
        });
    }
    let text = Members::parse(value)
        .and_then(|mut members| members.take_filled_text(MEMBER))
        .map_err(|_| Failure::Other("the stored value is no certificate".to_owned()))?
        .ok_or_else(|| refused("is not there to be made anew"))?;
    let der = pem::first_certificate(&text).ok_or_else(|| refused(UNREADABLE))?;
    let certificate = CertificateInner::<Raw>::from_der(&der).map_err(|_| refused(UNREADABLE))?;
    let key =
        PublicKey::of(certificate.tbs_certificate().subject_public_key_info()).map_err(refused)?;
    let body = tbs::body(&der).map_err(unreadable)?;
    let (mut parameters, is_complete) = told(&certificate, body, &key)?;
    parameters.kept = Kept::beside(&parameters, certificate.tbs_certificate(), body)?;
    Ok(Recovered {
        parameters: written(&parameters)?,
        is_complete,
    })
}

fn refused(rule: impl Into<String>) -> Failure {
    Failure::InvalidValue(Violation::of(MEMBER, rule))
}

fn unreadable(_: der::Error) -> Failure {
    refused(UNREADABLE)
}

/// The parameters that a certificate tells, and whether it tells them all.
fn told(
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
        self_sign: signs_itself(certificate, body, key).map_err(unreadable)?,
        kept: Kept::default(),
    };
    let is_complete = has_length && has_whole_subject && has_all_names && has_all_usages;
    Ok((parameters, is_complete))
}

/// The whole days between the beginning and the end, at least one.
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

/// Whether a certificate names itself as its issuer, byte for byte, and its own key made its signature.
fn signs_itself(
    certificate: &CertificateInner<Raw>,
    body: &[u8],
    key: &PublicKey,
) -> der::Result<bool> {
    let (issuer, subject) = tbs::names(body)?;
    let signature = certificate.signature().as_bytes().unwrap_or(&[]);
    Ok(issuer == subject && key.has_signed(certificate.signature_algorithm(), body, signature))
}

const MEMBER: &str = "certificate";
const UNREADABLE: &str = "can't be read";
const SECONDS_A_DAY: u64 = 24 * 60 * 60;
