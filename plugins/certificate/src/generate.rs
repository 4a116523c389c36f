//! Generates certificates.

use keywright_plugin_support::{Failure, Violation, canonical, no_settings, to_json};
use rand_core::CryptoRng;
use serde::Serialize;

use crate::{
    issuer::{Issuer, SigningError},
    parameters::Parameters,
    pem,
    private_key::PrivateKey,
    tbs::{self, Circumstances, SERIAL_NUMBER_BYTES},
};

/// Generates a key and a certificate from canonical parameters and returns the value as JSON.
///
/// `issuer` signs the certificate. Without an issuer, the certificate is self-signed.
///
/// # Errors
///
/// [`Failure::InvalidParameters`] if the value would be too large, the certificate would have the issuer's subject and no common
/// name, or the issuer refuses a certificate with kept parts; [`Failure::Other`] if the parameters are not canonical or do not match
/// the issuer, or the issuer does not sign for another reason;
/// [`Failure::Misconfigured`] for any setting.
pub fn generate(
    parameters: &str,
    settings: &str,
    now_seconds: u64,
    issuer: Option<&Issuer<'_>>,
    random: &mut impl CryptoRng,
) -> Result<String, Failure> {
    no_settings(settings)?;
    let parameters: Parameters = canonical(parameters)?;
    if parameters.self_sign == issuer.is_some() || parameters.ca.is_some() != issuer.is_some() {
        return Err(Failure::Other(
            "the parameters do not match the issuer".to_owned(),
        ));
    }
    let key = PrivateKey::generate(parameters.key_type, random)?;
    let private_key = key.to_pem()?;
    let certificate = certificate(&parameters, now_seconds, issuer, &key, random)?;
    let certificate_pem = pem::encode(&certificate)?;
    let ca = match issuer {
        Some(issuer) => pem::encode(&issuer.certificate)?,
        None => certificate_pem.clone(),
    };
    let value = to_json(&Value {
        ca,
        certificate: certificate_pem,
        private_key: &private_key,
    })?;
    if value.len() > VALUE_BYTES_MAX {
        return Err(too_large());
    }
    Ok(value)
}

#[derive(Serialize)]
struct Value<'a> {
    ca: String,
    certificate: String,
    private_key: &'a str,
}

fn certificate(
    parameters: &Parameters,
    now_seconds: u64,
    issuer: Option<&Issuer<'_>>,
    key: &PrivateKey,
    random: &mut impl CryptoRng,
) -> Result<Vec<u8>, Failure> {
    let public_key = key.public_key()?;
    let circumstances = Circumstances {
        public_key: &public_key,
        serial_number: serial_number(random),
        now_seconds,
    };
    let tbs_certificate = tbs::tbs_certificate(parameters, circumstances, issuer)?;
    if tbs_certificate.len() > TBS_BYTES_MAX {
        return Err(too_large());
    }
    if let Some(issuer) = issuer {
        return (issuer.sign_certificate)(&tbs_certificate).map_err(|error| match error {
            // The host did not check the kept parts as strictly when the certificate was set.
            SigningError::Refused(rule) if !parameters.kept.is_empty() => {
                Failure::InvalidParameters(Violation::of_whole(format!(
                    "the CA does not sign parts of the certificate that was set: {rule}"
                )))
            }
            // A caller can break only this rule. The host compares names without case, string types and spacing.
            SigningError::Refused(_)
                if !parameters.is_ca && !parameters.subject.has_common_name() =>
            {
                Failure::InvalidParameters(Violation::of_whole(
                    "common_name is required, because the other parameters of the subject equal the subject of the signing CA",
                ))
            }
            SigningError::Refused(reason) | SigningError::Other(reason) => {
                Failure::Other(format!("the issuer did not sign: {reason}"))
            }
        });
    }
    tbs::certificate(&tbs_certificate, &key.sign(&tbs_certificate, random)?)
}

fn too_large() -> Failure {
    Failure::InvalidParameters(Violation::of_whole(
        "the certificate would be too large: a value has at most 64 KiB; use fewer or shorter alternative_names",
    ))
}

/// Returns a random number of 159 bits.
pub(crate) fn serial_number(random: &mut impl CryptoRng) -> [u8; SERIAL_NUMBER_BYTES] {
    let mut octets = [0; SERIAL_NUMBER_BYTES];
    random.fill_bytes(&mut octets);
    let [most_significant, ..] = &mut octets;
    *most_significant &= 0x7f;
    octets
}

/// Maximum length of a value, below the default limit of a call's output. The host refuses values of more than 64 KiB, but the output
/// for a self-signed certificate contains the certificate twice.
const VALUE_BYTES_MAX: usize = 120 * 1024;

/// The largest body that an issuer signs.
const TBS_BYTES_MAX: usize = 64 * 1024;
