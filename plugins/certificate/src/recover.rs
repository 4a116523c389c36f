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
/// it, puts it in. What of its subject, alternative names and extended key usage can't be expressed in parameters, or
/// would come out in other bytes, is kept in [`Kept`]. The result is complete when nothing but bytes had to be kept, and
/// the key is of a length that may be asked for. Extensions that no parameter is about do not count.
///
/// # Errors
///
/// [`Failure::InvalidValue`] when there is no certificate, none that can be read, or one with a key like which none can
/// be made; [`Failure::Other`] when what is stored is not what this plugin writes; [`Failure::Misconfigured`] for any
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
    let (mut parameters, is_complete) = told(&certificate, &key, &der)?;
    parameters.kept = Kept::beside(&parameters, certificate.tbs_certificate())?;
    Ok(Recovered {
        parameters: written(&parameters)?,
        is_complete,
    })
}

fn refused(rule: impl Into<String>) -> Failure {
    Failure::InvalidValue(Violation::of(MEMBER, rule))
}

/// The parameters that a certificate tells, and whether it tells them all.
fn told(
    certificate: &CertificateInner<Raw>,
    key: &PublicKey,
    der: &[u8],
) -> Result<(Parameters, bool), Failure> {
    let unreadable = |_: der::Error| refused(UNREADABLE);
    let tbs = certificate.tbs_certificate();
    let (key_type, has_length) = key.key_type().map_err(refused)?;
    let (subject, has_whole_subject) = Subject::of_name(tbs.subject());
    let (alternative_names, has_all_names) = kept::alternative_names(tbs)
        .map_or(Ok((Vec::new(), true)), AlternativeName::of_extension)
        .map_err(unreadable)?;
    let (extended_key_usage, has_all_usages) = kept::extended_key_usage(tbs)
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
        self_sign: tbs.issuer() == tbs.subject() && is_signed_with(key, certificate, der),
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

/// Whether the certificate's own key made its signature.
///
/// The names agree already. Where this plugin can't check a signature, because its algorithm is another one than is usual
/// for the key, that is all there is to go by; the host knows more.
fn is_signed_with(key: &PublicKey, certificate: &CertificateInner<Raw>, der: &[u8]) -> bool {
    let body = tbs::fields(der).and_then(|mut fields| fields.next().transpose());
    let (Ok(Some(body)), Some(signature)) = (body, certificate.signature().as_bytes()) else {
        return false;
    };
    key.has_signed(certificate.signature_algorithm().oid, body, signature)
        .unwrap_or(true)
}

const MEMBER: &str = "certificate";
const UNREADABLE: &str = "can't be read";
const SECONDS_A_DAY: u64 = 24 * 60 * 60;
