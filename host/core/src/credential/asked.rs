//! Holding a guest to what was asked for. What an issuer is lent for comes from the caller, or from a certificate that the
//! host reads itself: a guest's parameters may name no other authority, nor say more than that of an authority, a
//! duration, or what the key may sign for its issuer.

use serde_json::Value;

use crate::{
    Failure,
    certificate::{DURATION_DAYS_MAX, IssuanceFacts, SigningUsages},
    credential::{CredentialName, Parameters},
    ports::{Generator, PluginFailure, PluginFault},
};

/// Whether the certificate is to be an authority.
pub(super) const IS_CA: &str = "is_ca";

/// How long the certificate is to last, in days.
pub(super) const DURATION: &str = "duration";

/// The common name of the subject.
pub(super) const COMMON_NAME: &str = "common_name";

/// The parameters of the subject.
pub(super) const SUBJECT: [&str; 6] = [
    COMMON_NAME,
    "organization",
    "organization_unit",
    "locality",
    "state",
    "country",
];

/// For what the key may be used, and for which purposes.
const KEY_USAGE: &str = "key_usage";
const EXTENDED_KEY_USAGE: &str = "extended_key_usage";

/// What the host knows of a certificate that was set.
pub(super) struct SetCertificate<'a> {
    /// The credential that signed it, unless it signed itself.
    pub(super) signer: Option<&'a CredentialName>,
    pub(super) is_authority: bool,
    pub(super) issuance: IssuanceFacts,
}

/// The canonical form of what was asked for.
///
/// # Errors
/// When the plugin refuses or fails, which it also does when it makes more of it than was asked for.
pub(super) async fn normalize(
    generator: &dyn Generator,
    asked: &Parameters,
) -> Result<Parameters, Failure> {
    let normalized = generator.normalize(asked).await?;
    let Some(issuer_parameter) = generator.issuer_parameter() else {
        return Ok(normalized);
    };
    let has_same_issuer = normalized.member(issuer_parameter) == asked.member(issuer_parameter);
    let limits = Limits {
        may_be_authority: asks_for_authority(asked),
        signing_usages: signing_usages(asked),
        duration_days_max: days(asked).max(u64::from(DURATION_DAYS_MAX)),
    };
    if has_same_issuer && limits.include(&normalized) {
        Ok(normalized)
    } else {
        Err(malformed(generator))
    }
}

/// What was recovered, with what the issuer goes by as it was stored.
pub(super) fn as_stored(
    mut recovered: Parameters,
    stored: &Parameters,
    issuer_parameter: &str,
) -> Parameters {
    for name in [
        issuer_parameter,
        COMMON_NAME,
        IS_CA,
        DURATION,
        KEY_USAGE,
        EXTENDED_KEY_USAGE,
    ] {
        match stored.member(name) {
            Some(value) => recovered.insert(name, value.clone()),
            None => drop(recovered.remove(name)),
        }
    }
    recovered
}

/// What was recovered from a certificate that was set, with the name of the authority that signed it.
///
/// # Errors
/// When the plugin makes more of the certificate than it is; or when it can't be made anew, since nobody knows who signed
/// it.
pub(super) fn as_set(
    mut recovered: Parameters,
    set: &SetCertificate<'_>,
    generator: &dyn Generator,
    issuer_parameter: &str,
) -> Result<Parameters, Failure> {
    let limits = Limits {
        may_be_authority: set.is_authority,
        signing_usages: set.issuance.signing_usages,
        duration_days_max: u64::from(set.issuance.duration_days),
    };
    if !limits.include(&recovered) {
        return Err(malformed(generator));
    }
    if let Some(signer) = set.signer {
        recovered.insert(issuer_parameter, Value::String(signer.to_string()));
        // A plugin can't verify every signature that there is; the host knows who signed.
        if recovered.is_true(SELF_SIGN) {
            recovered.insert(SELF_SIGN, Value::Bool(false));
        }
    } else {
        recovered.remove(issuer_parameter);
        if !recovered.is_true(SELF_SIGN) {
            return Err(Failure::NotRegeneratable(
                "it was set, and the name of the certificate authority that signed it is unknown"
                    .to_owned(),
            ));
        }
    }
    Ok(recovered)
}

/// What the parameters say that the certificate's key may sign for its issuer.
pub(super) fn signing_usages(parameters: &Parameters) -> SigningUsages {
    let names = |parameter, usage| {
        let usages = parameters.member(parameter).and_then(Value::as_array);
        usages.is_some_and(|usages| usages.iter().any(|name| name == usage))
    };
    SigningUsages {
        certificates: names(KEY_USAGE, "key_cert_sign"),
        revocation_lists: names(KEY_USAGE, "crl_sign"),
        ocsp_responses: names(EXTENDED_KEY_USAGE, "ocsp_signing"),
    }
}

/// The most that parameters of a guest may say.
struct Limits {
    may_be_authority: bool,
    signing_usages: SigningUsages,
    duration_days_max: u64,
}

impl Limits {
    fn include(&self, parameters: &Parameters) -> bool {
        let has_usages =
            self.may_be_authority || signing_usages(parameters).is_within(self.signing_usages);
        (self.may_be_authority || !parameters.is_true(IS_CA))
            && has_usages
            && days(parameters) <= self.duration_days_max
    }
}

/// A caller may send a flag as text. It still is one if the plugin's schema declares no type for it.
fn asks_for_authority(asked: &Parameters) -> bool {
    asked.is_true(IS_CA) || asked.text(IS_CA) == Some("true")
}

/// The days that an issuer would go by; none for what it takes for no number.
fn days(parameters: &Parameters) -> u64 {
    let duration = parameters.member(DURATION).and_then(Value::as_u64);
    duration.unwrap_or_default()
}

fn malformed(generator: &dyn Generator) -> Failure {
    Failure::Plugin(PluginFailure::Faulted {
        plugin: generator.identity().name.clone(),
        fault: PluginFault::OutputMalformed,
    })
}

const SELF_SIGN: &str = "self_sign";
