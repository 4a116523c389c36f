//! Output of certificates and their versions, without private keys.

use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

use crate::{
    CertificateSummary, CredentialVersion, SecretJson,
    output::{Shown, Table},
    secret::Exposed,
};

/// Certificates, without their contents.
pub(super) struct ShownSummaries<'a>(pub(super) &'a [CertificateSummary]);

/// Versions of a certificate, without their private keys.
pub(super) struct ShownVersions<'a>(pub(super) &'a [CredentialVersion]);

impl Shown for ShownSummaries<'_> {
    fn json(&self) -> Result<Box<RawValue>, serde_json::Error> {
        to_raw_value(self.0)
    }

    fn table(&self) -> Table {
        let row = |certificate: &CertificateSummary| {
            let newest = certificate.versions.first();
            let expires = newest.map_or("", |version| &version.expiry_date);
            let in_transition = certificate.versions.iter().any(|one| one.transitional);
            vec![
                certificate.name.clone(),
                expires.to_owned(),
                certificate.versions.len().to_string(),
                yes(in_transition),
                certificate.signed_by.clone(),
                (certificate.signs.len() + certificate.issued.len()).to_string(),
            ]
        };
        Table::Rows {
            heads: vec![
                "NAME",
                "EXPIRES",
                "VERSIONS",
                "TRANSITIONAL",
                "SIGNED BY",
                "SIGNS",
            ],
            rows: self.0.iter().map(row).collect(),
        }
    }
}

impl Shown for ShownVersions<'_> {
    fn json(&self) -> Result<Box<RawValue>, serde_json::Error> {
        let versions: Vec<_> = self.0.iter().map(PublicVersion::of).collect();
        to_raw_value(&versions)
    }

    fn table(&self) -> Table {
        let row = |version: &CredentialVersion| {
            vec![
                version.id.clone(),
                version.version_created_at.clone(),
                version.expiry_date.clone().unwrap_or_default(),
                yes(version.transitional == Some(true)),
                yes(version.certificate_authority == Some(true)),
                yes(version.self_signed == Some(true)),
            ]
        };
        Table::Rows {
            heads: vec![
                "ID",
                "CREATED",
                "EXPIRES",
                "TRANSITIONAL",
                "CA",
                "SELF-SIGNED",
            ],
            rows: self.0.iter().map(row).collect(),
        }
    }
}

/// A version in the API's format, without the secret fields of its value.
#[derive(Serialize)]
struct PublicVersion<'a> {
    version_created_at: &'a str,
    id: &'a str,
    name: &'a str,
    metadata: Option<Exposed<'a>>,
    value: PublicValue,
    transitional: Option<bool>,
    certificate_authority: Option<bool>,
    self_signed: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    generated: Option<bool>,
    expiry_date: Option<&'a str>,
}

#[derive(Serialize)]
struct PublicValue {
    ca: Option<String>,
    certificate: Option<String>,
}

impl<'a> PublicVersion<'a> {
    fn of(version: &'a CredentialVersion) -> Self {
        Self {
            version_created_at: &version.version_created_at,
            id: &version.id,
            name: &version.name,
            metadata: version.metadata.as_ref().map(SecretJson::exposed),
            value: PublicValue {
                ca: version.public_field("ca"),
                certificate: version.public_field("certificate"),
            },
            transitional: version.transitional,
            certificate_authority: version.certificate_authority,
            self_signed: version.self_signed,
            generated: version.generated,
            expiry_date: version.expiry_date.as_deref(),
        }
    }
}

fn yes(is_so: bool) -> String {
    if is_so { "yes" } else { "" }.to_owned()
}
