//! Reading the value of a stored certificate.

use serde_json::{Map, Value};

use crate::{Failure, Secret, ports::CertificateMembers};

/// The members of a stored certificate's value.
#[derive(Clone)]
pub(crate) struct StoredCertificate {
    pub(crate) ca: Option<String>,
    pub(crate) certificate: Option<String>,
    pub(crate) private_key: Option<Secret>,
}

impl StoredCertificate {
    pub(crate) fn parse(value: &Secret) -> Result<Self, Failure> {
        let Ok(Value::Object(mut members)) = serde_json::from_str(value.expose()) else {
            return Err(Failure::StoredValueMalformed);
        };
        let mut take =
            |name| take_text(&mut members, name).map_err(|_| Failure::StoredValueMalformed);
        Ok(Self {
            ca: take("ca")?,
            certificate: take("certificate")?,
            private_key: take("private_key")?.map(Secret::new),
        })
    }

    /// The members as the checks take them.
    pub(crate) fn members(&self) -> CertificateMembers<'_> {
        CertificateMembers {
            ca: self.ca.as_deref(),
            certificate: self.certificate.as_deref(),
            private_key: self.private_key.as_ref(),
            ca_is_stored: false,
        }
    }
}

/// Takes a member that is a text; the empty string and null are absent.
pub(super) fn take_text(
    members: &mut Map<String, Value>,
    name: &str,
) -> Result<Option<String>, Failure> {
    match members.remove(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text).filter(|text| !text.is_empty())),
        Some(_) => Err(Failure::ValueRefused(format!("{name} must be a string"))),
    }
}
