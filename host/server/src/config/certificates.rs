//! What holds for all certificates that the server makes.

use keywright_core::certificate::{CertificateSettings, DURATION_DAYS_MAX};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::started::StartRefused;

/// What holds for all certificates that the server makes.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct CertificatesConfig {
    /// The shortest duration of an authority's certificate, in days; a shorter one is raised to it.
    #[schemars(range(max = DURATION_DAYS_MAX))]
    ca_minimum_duration_in_days: u32,
    /// The shortest duration of any other certificate, in days; a shorter one is raised to it.
    #[schemars(range(max = DURATION_DAYS_MAX))]
    leaf_minimum_duration_in_days: u32,
    /// Whether an authority for which no key usage was asked gets `key_cert_sign` and `crl_sign`.
    enable_default_ca_key_usages: bool,
    /// Whether `ca` in answers also holds the certificate that is trusted beside the one that signed.
    concatenate_cas: bool,
}

impl CertificatesConfig {
    /// The settings, checked.
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
                    "certificates.{name} is {days}, and may be at most {DURATION_DAYS_MAX}"
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
