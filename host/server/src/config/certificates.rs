//! Settings for all generated certificates.

use keywright_core::certificate::{CertificateSettings, DURATION_DAYS_MAX};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::started::StartRefused;

/// Settings for all generated certificates.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct CertificatesConfig {
    /// Minimum duration of a CA certificate; a shorter one is raised to it.
    #[schemars(range(max = DURATION_DAYS_MAX))]
    ca_minimum_duration_in_days: u32,
    /// Minimum duration of any other certificate; a shorter one is raised to it.
    #[schemars(range(max = DURATION_DAYS_MAX))]
    leaf_minimum_duration_in_days: u32,
    /// Whether a CA generated without key usages gets `key_cert_sign` and `crl_sign`.
    enable_default_ca_key_usages: bool,
    /// Whether `ca` in responses also contains the CA's other trusted certificate, next to the one that signed.
    concatenate_cas: bool,
}

impl CertificatesConfig {
    /// Validates and returns the settings.
    pub(crate) fn settings(&self) -> Result<CertificateSettings, StartRefused> {
        for (name, days) in [
            (
                "ca_minimum_duration_in_days",
                self.ca_minimum_duration_in_days,
            ),
            (
                "leaf_minimum_duration_in_days",
                self.leaf_minimum_duration_in_days,
            ),
        ] {
            if days > DURATION_DAYS_MAX {
                return Err(StartRefused::new(format!(
                    "certificates.{name} must be at most {DURATION_DAYS_MAX}, not {days}"
                )));
            }
        }
        Ok(CertificateSettings {
            authority_duration_days_min: self.ca_minimum_duration_in_days,
            leaf_duration_days_min: self.leaf_minimum_duration_in_days,
            has_default_authority_key_usages: self.enable_default_ca_key_usages,
            concatenates_authorities: self.concatenate_cas,
        })
    }
}
