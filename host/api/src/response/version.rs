//! Renders a credential version.

use keywright_core::{
    Failure,
    credential::{CredentialVersion, Issuance, Written},
};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, value::RawValue};
use uuid::Uuid;

use crate::{description::Timestamp, response::timestamp};

/// A credential version in a response, with fields in order. The stored value is unchanged.
#[derive(Serialize, JsonSchema)]
pub(crate) struct VersionBody<'a> {
    /// The credential's type, in lower case.
    #[serde(rename = "type")]
    credential_type: &'a str,
    /// When this version was created.
    #[schemars(with = "Timestamp")]
    version_created_at: String,
    /// The id of this version.
    id: Uuid,
    /// The credential's name, with the case of its first version.
    name: &'a str,
    /// The metadata of this version, any JSON; null if there is none.
    #[schemars(with = "Value")]
    metadata: Option<&'a RawValue>,
    /// The value; its schema depends on the type.
    #[schemars(with = "Value")]
    value: &'a RawValue,
    /// For certificates: whether this version is transitional: trusted, but not signing.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "bool")]
    transitional: Option<bool>,
    /// For certificates: whether this version is a CA certificate.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "bool")]
    certificate_authority: Option<bool>,
    /// For certificates: whether this version is self-signed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "bool")]
    self_signed: Option<bool>,
    /// For certificates: whether the server generated this version; absent if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "bool")]
    generated: Option<bool>,
    /// For certificates: when this version expires; null if it has no certificate.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Timestamp>")]
    #[expect(
        clippy::option_option,
        reason = "absent, null or a time are different responses"
    )]
    expiry_date: Option<Option<String>>,
    /// For a newly generated certificate: whether the requested duration was raised to the configured minimum.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "bool")]
    duration_overridden: Option<bool>,
    /// For a newly generated certificate: its validity in days; 0 for one that was kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "u32")]
    duration_used: Option<u32>,
    /// For a certificate that was just generated or kept: the length of its key, in bits.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "u32")]
    key_length: Option<u32>,
}

impl<'a> VersionBody<'a> {
    /// Creates the body for a version that was set or read.
    ///
    /// # Errors
    /// If the stored value is not JSON.
    pub(crate) fn of(version: &'a CredentialVersion) -> Result<Self, Failure> {
        let metadata = version.metadata.as_ref();
        let marks = version.certificate.as_ref();
        let facts = marks.and_then(|marks| marks.facts.as_ref());
        Ok(Self {
            credential_type: version.credential_type.as_str(),
            version_created_at: timestamp(version.created_at),
            id: version.id,
            name: version.name.as_str(),
            metadata: metadata
                .map(|metadata| raw(metadata.json().expose()))
                .transpose()?,
            value: raw(version.value.expose())?,
            transitional: marks.map(|marks| marks.is_transitional),
            certificate_authority: marks
                .map(|_| facts.is_some_and(|facts| facts.is_certificate_authority)),
            self_signed: marks.map(|_| facts.is_some_and(|facts| facts.is_self_signed)),
            generated: marks.and_then(|marks| marks.is_generated),
            expiry_date: marks.map(|_| facts.map(|facts| timestamp(facts.expires_at))),
            duration_overridden: None,
            duration_used: None,
            key_length: None,
        })
    }

    /// Creates the body for a version that was generated or regenerated.
    ///
    /// # Errors
    /// If the stored value is not JSON.
    pub(crate) fn of_written(written: &'a Written) -> Result<Self, Failure> {
        let issuance: Option<&Issuance> = written.issuance.as_ref();
        Ok(Self {
            duration_overridden: issuance.map(|issuance| issuance.is_duration_overridden),
            duration_used: issuance.map(|issuance| issuance.duration_used_days),
            key_length: issuance.map(|issuance| issuance.key_length_bits),
            ..Self::of(&written.version)?
        })
    }
}

fn raw(json: &str) -> Result<&RawValue, Failure> {
    keywright_json::raw(json).map_err(|_| Failure::StoredValueMalformed)
}

#[cfg(test)]
mod tests {
    use keywright_core::{
        Secret,
        certificate::CertificateFacts,
        credential::{CertificateMarks, CredentialName, CredentialType, Metadata},
    };

    use super::*;

    fn version(credential_type: &str, value: &str) -> CredentialVersion {
        CredentialVersion {
            id: Uuid::nil(),
            name: CredentialName::parse("/a/b").unwrap(),
            credential_type: CredentialType::parse(credential_type).unwrap(),
            created_at: "2026-01-02T03:04:05.678Z".parse().unwrap(),
            metadata: None,
            value: Secret::new(value.to_owned()),
            certificate: None,
        }
    }

    fn certificate() -> CredentialVersion {
        CredentialVersion {
            certificate: Some(CertificateMarks {
                is_transitional: true,
                is_generated: Some(true),
                facts: Some(CertificateFacts {
                    expires_at: "2027-01-02T03:04:05Z".parse().unwrap(),
                    is_certificate_authority: true,
                    is_self_signed: false,
                    key_length_bits: 2048,
                    serial_number: None,
                }),
            }),
            ..version("certificate", r#"{"ca":null}"#)
        }
    }

    fn render(version: &CredentialVersion) -> String {
        serde_json::to_string(&VersionBody::of(version).unwrap()).unwrap()
    }

    const HEAD: &str = r#""version_created_at":"2026-01-02T03:04:05Z","id":"00000000-0000-0000-0000-000000000000","name":"/a/b","#;

    #[test]
    fn fields_are_in_order_and_the_value_is_unchanged() {
        let mut version = version("json", r#"{"z":1.10,"a":"ä"}"#);
        assert_eq!(
            render(&version),
            format!(r#"{{"type":"json",{HEAD}"metadata":null,"value":{{"z":1.10,"a":"ä"}}}}"#)
        );
        version.metadata =
            Some(Metadata::parse(Secret::new(r#"{"b":1e2,"a":[]}"#.to_owned())).unwrap());
        assert!(render(&version).contains(r#""metadata":{"b":1e2,"a":[]},"value""#));
    }

    #[test]
    fn a_certificate_has_additional_fields() {
        assert_eq!(
            render(&certificate()),
            format!(
                r#"{{"type":"certificate",{HEAD}"metadata":null,"value":{{"ca":null}},"transitional":true,"certificate_authority":true,"self_signed":false,"generated":true,"expiry_date":"2027-01-02T03:04:05Z"}}"#
            )
        );
    }

    #[test]
    fn expiry_is_null_and_generated_absent_if_unknown() {
        let mut version = certificate();
        version.certificate = Some(CertificateMarks {
            is_transitional: false,
            is_generated: None,
            facts: None,
        });
        assert!(render(&version).ends_with(
            r#""transitional":false,"certificate_authority":false,"self_signed":false,"expiry_date":null}"#
        ));
    }

    #[test]
    fn only_written_versions_have_issuance_fields() {
        let written = Written {
            version: certificate(),
            issuance: Some(Issuance {
                is_duration_overridden: false,
                duration_used_days: 365,
                key_length_bits: 2048,
            }),
        };
        let body = serde_json::to_string(&VersionBody::of_written(&written).unwrap()).unwrap();
        assert!(body.ends_with(
            r#""expiry_date":"2027-01-02T03:04:05Z","duration_overridden":false,"duration_used":365,"key_length":2048}"#
        ));
    }

    #[test]
    fn invalid_json_is_not_rendered() {
        for value in ["", "{", r#"1,"name":2"#] {
            assert!(
                VersionBody::of(&version("value", value)).is_err(),
                "{value}"
            );
        }
    }
}
