//! Server-wide settings for certificates.

use serde_json::{Value, json};

use crate::credential::{CredentialType, Parameters};

/// Server-wide settings for generated certificates.
///
/// They change the canonical parameters before these are compared with stored parameters and stored. So a generate request in
/// mode `converge` keeps a certificate that an equal request generated under the same settings, and regenerates a certificate
/// that was generated under weaker settings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CertificateSettings {
    /// The minimum duration of a CA certificate, in days. Shorter durations are raised to it.
    pub authority_duration_days_min: u32,
    /// The minimum duration of a leaf certificate, in days. Shorter durations are raised to it.
    pub leaf_duration_days_min: u32,
    /// Whether a CA requested without key usages gets the usages that RFC 5280 requires: `key_cert_sign` and `crl_sign`.
    pub has_default_authority_key_usages: bool,
    /// Whether `ca` in responses also contains the other trusted CA certificate, after the issuing CA certificate.
    pub concatenates_authorities: bool,
}

/// Canonical parameters with the settings applied.
#[derive(Clone, Debug)]
pub(crate) struct EffectiveParameters {
    /// The parameters.
    pub(crate) parameters: Parameters,
    /// Whether the duration was raised.
    pub(crate) is_duration_overridden: bool,
}

impl CertificateSettings {
    /// Applies the settings to canonical parameters. Has no effect on types other than certificate.
    pub(crate) fn apply(
        self,
        credential_type: &CredentialType,
        mut parameters: Parameters,
    ) -> EffectiveParameters {
        let mut is_duration_overridden = false;
        if credential_type.is_certificate() {
            is_duration_overridden = self.raise_duration(&mut parameters);
            self.add_default_key_usages(&mut parameters);
        }
        EffectiveParameters {
            parameters,
            is_duration_overridden,
        }
    }

    fn raise_duration(self, parameters: &mut Parameters) -> bool {
        let duration_days_min = if parameters.is_true("is_ca") {
            self.authority_duration_days_min
        } else {
            self.leaf_duration_days_min
        };
        let is_shorter = parameters
            .member("duration")
            .and_then(Value::as_u64)
            .is_some_and(|days| days < u64::from(duration_days_min));
        if is_shorter {
            parameters.insert("duration", duration_days_min.into());
        }
        is_shorter
    }

    fn add_default_key_usages(self, parameters: &mut Parameters) {
        let has_key_usage = parameters
            .member("key_usage")
            .and_then(Value::as_array)
            .is_some_and(|usages| !usages.is_empty());
        if self.has_default_authority_key_usages && parameters.is_true("is_ca") && !has_key_usage {
            // In the order of the canonical form, because comparisons depend on it.
            parameters.insert("key_usage", json!(["key_cert_sign", "crl_sign"]));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SETTINGS: CertificateSettings = CertificateSettings {
        authority_duration_days_min: 100,
        leaf_duration_days_min: 50,
        has_default_authority_key_usages: true,
        concatenates_authorities: false,
    };

    fn parameters(json: Value) -> Parameters {
        let Value::Object(members) = json else {
            panic!("not an object")
        };
        Parameters::new(members)
    }

    fn applied(settings: CertificateSettings, credential_type: &str, json: Value) -> (Value, bool) {
        let credential_type = CredentialType::parse(credential_type).unwrap();
        let effective = settings.apply(&credential_type, parameters(json));
        let text = effective.parameters.to_json();
        let parameters = serde_json::from_str(&text).unwrap();
        (parameters, effective.is_duration_overridden)
    }

    #[test]
    fn a_duration_below_the_minimum_of_its_kind_is_raised() {
        for (is_ca, days, used) in [
            (true, 99, 100),
            (true, 100, 100),
            (true, 101, 101),
            (false, 1, 50),
            (false, 50, 50),
            (false, 99, 99),
        ] {
            let json = json!({"duration": days, "is_ca": is_ca, "key_usage": ["crl_sign"]});
            let (effective, is_overridden) = applied(SETTINGS, "certificate", json);
            assert_eq!(effective["duration"], used);
            assert_eq!(is_overridden, days != used);
        }
    }

    #[test]
    fn only_authorities_without_key_usages_get_the_defaults() {
        for (json, usages) in [
            (json!({"is_ca": true}), json!(["key_cert_sign", "crl_sign"])),
            (
                json!({"is_ca": true, "key_usage": []}),
                json!(["key_cert_sign", "crl_sign"]),
            ),
            (
                json!({"is_ca": true, "key_usage": ["crl_sign"]}),
                json!(["crl_sign"]),
            ),
            (json!({"is_ca": false}), Value::Null),
        ] {
            let (effective, _) = applied(SETTINGS, "certificate", json);
            assert_eq!(effective["key_usage"], usages);
        }
    }

    #[test]
    fn parameters_stay_without_settings_and_for_other_types() {
        let json = json!({"is_ca": true, "duration": 1});
        for (settings, credential_type) in [
            (CertificateSettings::default(), "certificate"),
            (SETTINGS, "wireguard"),
        ] {
            assert_eq!(
                applied(settings, credential_type, json.clone()),
                (json.clone(), false)
            );
        }
    }
}
