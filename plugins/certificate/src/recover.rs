//! Finding the parameters of a stored certificate.

use der::{Decode, asn1::ObjectIdentifier};
use keywright_plugin_support::{
    Failure, KeyLength, Members, Recovered, Violation, no_settings, written,
};
use rsa::{
    RsaPublicKey,
    pkcs1::DecodeRsaPublicKey,
    pkcs1v15::{Signature, VerifyingKey},
    signature::Verifier,
    traits::PublicKeyParts,
};
use sha1::Sha1;
use sha2::{Sha256, Sha384, Sha512};
use x509_cert::{
    certificate::{CertificateInner, Raw, TbsCertificateInner},
    ext::pkix::{self, BasicConstraints, SubjectAltName},
};

use crate::{
    alternative_name::AlternativeName,
    parameters::Parameters,
    pem,
    subject::Subject,
    tbs,
    usage::{ExtendedKeyUsage, KeyUsage},
};

/// Returns the stored parameters, or else those that the certificate tells.
///
/// A certificate does not tell the name of the credential that signed it: `ca` is left out, and the host, which knows
/// it, puts it in. The result is complete when the certificate has an RSA key of a length that may be asked for, and
/// its subject, alternative names and usages are all such as may be asked for; what can't be expressed is left out.
/// Extensions that no parameter is about do not count.
///
/// # Errors
///
/// [`Failure::InvalidValue`] when there is no certificate, or none that can be read; [`Failure::Other`] when what is
/// stored is not what this plugin writes; [`Failure::Misconfigured`] for any setting.
pub fn recover(
    parameters: Option<String>,
    value: &str,
    settings: &str,
) -> Result<Recovered, Failure> {
    no_settings(settings)?;
    if let Some(parameters) = parameters {
        return Ok(Recovered {
            parameters,
            is_complete: true,
        });
    }
    let text = Members::parse(value)
        .and_then(|mut members| members.take_filled_text(MEMBER))
        .map_err(|_| Failure::Other("the stored value is no certificate".to_owned()))?
        .ok_or_else(|| unreadable("is not there to be made anew"))?;
    let der = pem::first_certificate(&text).ok_or_else(|| unreadable("can't be read"))?;
    let (parameters, is_complete) = told(&der).map_err(|_| unreadable("can't be read"))?;
    Ok(Recovered {
        parameters: written(&parameters)?,
        is_complete,
    })
}

fn unreadable(rule: &str) -> Failure {
    Failure::InvalidValue(Violation::of(MEMBER, rule))
}

/// The parameters that a certificate tells, and whether it tells them all.
fn told(der: &[u8]) -> der::Result<(Parameters, bool)> {
    let certificate = CertificateInner::<Raw>::from_der(der)?;
    let tbs = certificate.tbs_certificate();
    let key = public_key(tbs);
    let key_length = key
        .as_ref()
        .and_then(|key| KeyLength::of_bits(key.n().bits().into()));
    let (subject, has_whole_subject) = Subject::of_name(tbs.subject());
    let (alternative_names, has_all_names) = alternative_names(tbs)?;
    let (extended_key_usage, has_all_usages) = extended_key_usage(tbs)?;
    let parameters = Parameters {
        subject,
        alternative_names,
        key_usage: tbs
            .get_extension::<pkix::KeyUsage>()?
            .iter()
            .flat_map(|(_, usage)| KeyUsage::asserted(usage))
            .collect(),
        extended_key_usage,
        key_length: key_length.unwrap_or_default(),
        duration_days: duration_days(tbs),
        ca: None,
        is_ca: tbs
            .get_extension::<BasicConstraints>()?
            .is_some_and(|(_, basic)| basic.ca),
        self_sign: tbs.issuer() == tbs.subject() && is_signed_with(key, &certificate, der),
    };
    let is_complete = key_length.is_some() && has_whole_subject && has_all_names && has_all_usages;
    Ok((parameters, is_complete))
}

fn public_key(tbs: &TbsCertificateInner<Raw>) -> Option<RsaPublicKey> {
    let key = tbs.subject_public_key_info();
    if key.algorithm.oid != RSA_ENCRYPTION {
        return None;
    }
    RsaPublicKey::from_pkcs1_der(key.subject_public_key.as_bytes()?).ok()
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

fn alternative_names(tbs: &TbsCertificateInner<Raw>) -> der::Result<(Vec<AlternativeName>, bool)> {
    let Some((_, SubjectAltName(names))) = tbs.get_extension::<SubjectAltName>()? else {
        return Ok((Vec::new(), true));
    };
    let found: Vec<_> = names
        .iter()
        .filter_map(AlternativeName::of_general_name)
        .collect();
    let has_all = found.len() == names.len();
    Ok((found, has_all))
}

fn extended_key_usage(
    tbs: &TbsCertificateInner<Raw>,
) -> der::Result<(Vec<ExtendedKeyUsage>, bool)> {
    let Some((_, pkix::ExtendedKeyUsage(usages))) = tbs.get_extension()? else {
        return Ok((Vec::new(), true));
    };
    let found: Vec<_> = usages
        .iter()
        .filter_map(ExtendedKeyUsage::identified)
        .collect();
    let has_all = found.len() == usages.len();
    Ok((found, has_all))
}

/// Whether the certificate's own key made its signature.
///
/// The names agree already. Where this plugin can't check a signature, because the key is not RSA or the algorithm
/// another one, that is all there is to go by.
fn is_signed_with(
    key: Option<RsaPublicKey>,
    certificate: &CertificateInner<Raw>,
    der: &[u8],
) -> bool {
    let Some(key) = key else { return true };
    let body = tbs::fields(der).and_then(|mut fields| fields.next().transpose());
    let (Ok(Some(body)), Some(signature)) = (body, certificate.signature().as_bytes()) else {
        return false;
    };
    let Ok(signature) = Signature::try_from(signature) else {
        return false;
    };
    match certificate.signature_algorithm().oid {
        SHA1_WITH_RSA => VerifyingKey::<Sha1>::new(key)
            .verify(body, &signature)
            .is_ok(),
        SHA256_WITH_RSA => VerifyingKey::<Sha256>::new(key)
            .verify(body, &signature)
            .is_ok(),
        SHA384_WITH_RSA => VerifyingKey::<Sha384>::new(key)
            .verify(body, &signature)
            .is_ok(),
        SHA512_WITH_RSA => VerifyingKey::<Sha512>::new(key)
            .verify(body, &signature)
            .is_ok(),
        _ => true,
    }
}

const MEMBER: &str = "certificate";
const SECONDS_A_DAY: u64 = 24 * 60 * 60;

const RSA_ENCRYPTION: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.1");
const SHA1_WITH_RSA: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.5");
const SHA256_WITH_RSA: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.11");
const SHA384_WITH_RSA: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.12");
const SHA512_WITH_RSA: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.13");
