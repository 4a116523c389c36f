//! Parsing the value of a stored certificate.

use std::collections::BTreeMap;

use keywright_json::JsonError;
use serde_json::value::RawValue;

use crate::{Failure, Secret, ports::CertificateMembers};

/// The fields of a stored certificate's value.
#[derive(Clone)]
pub(crate) struct StoredCertificate {
    pub(crate) ca: Option<String>,
    pub(crate) certificate: Option<String>,
    pub(crate) private_key: Option<Secret>,
}

impl StoredCertificate {
    pub(crate) fn parse(value: &Secret) -> Result<Self, Failure> {
        let mut members = members(value).map_err(|_| Failure::StoredValueMalformed)?;
        let mut take =
            |name| take_text(&mut members, name).map_err(|_| Failure::StoredValueMalformed);
        Ok(Self {
            ca: take("ca")?,
            certificate: take("certificate")?,
            private_key: take("private_key")?.map(Secret::new),
        })
    }

    /// Returns the fields for a check.
    pub(crate) fn members(&self) -> CertificateMembers<'_> {
        CertificateMembers {
            ca: self.ca.as_deref(),
            certificate: self.certificate.as_deref(),
            private_key: self.private_key.as_ref(),
            ca_is_stored: false,
        }
    }
}

/// The fields of a certificate's value as JSON texts.
pub(super) type Fields<'a> = BTreeMap<String, &'a RawValue>;

/// Parses the value of a certificate into its fields.
///
/// # Errors
/// If it is not an object.
pub(super) fn members(value: &Secret) -> Result<Fields<'_>, JsonError> {
    Ok(keywright_json::fields(value.expose())?
        .into_iter()
        .collect())
}

/// Removes a string field. An empty string and null count as missing.
pub(super) fn take_text(members: &mut Fields<'_>, name: &str) -> Result<Option<String>, Failure> {
    let Some(member) = members.remove(name).filter(|member| member.get() != "null") else {
        return Ok(None);
    };
    let text = keywright_json::text(member.get());
    let text = text.map_err(|_| Failure::ValueRefused(format!("{name} must be a string")))?;
    Ok(Some(text).filter(|text| !text.is_empty()))
}
