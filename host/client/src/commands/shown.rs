//! Output of credentials.

use std::collections::BTreeMap;

use serde_json::value::{RawValue, to_raw_value};

use crate::{
    CredentialVersion, FoundCredential,
    output::{Shown, Table},
};

/// One version, with its value.
pub(super) struct ShownVersion<'a>(pub(super) &'a CredentialVersion);

/// Several versions of one credential, with their values.
pub(super) struct ShownVersions<'a>(pub(super) &'a [CredentialVersion]);

/// Found credentials.
pub(super) struct ShownFound<'a>(pub(super) &'a [FoundCredential]);

impl Shown for ShownVersion<'_> {
    fn json(&self) -> Result<Box<RawValue>, serde_json::Error> {
        to_raw_value(&self.0.whole.exposed())
    }

    fn table(&self) -> Table {
        Table::Fields(fields(self.0))
    }
}

impl Shown for ShownVersions<'_> {
    fn json(&self) -> Result<Box<RawValue>, serde_json::Error> {
        let versions: Vec<_> = self
            .0
            .iter()
            .map(|version| version.whole.exposed())
            .collect();
        to_raw_value(&BTreeMap::from([("data", versions)]))
    }

    fn table(&self) -> Table {
        let row = |version: &CredentialVersion| {
            vec![
                version.id.clone(),
                version.version_created_at.clone(),
                version.expiry_date.clone().unwrap_or_default(),
                version.value.plain().to_string(),
            ]
        };
        Table::Rows {
            heads: vec!["ID", "CREATED", "EXPIRES", "VALUE"],
            rows: self.0.iter().map(row).collect(),
        }
    }
}

impl Shown for ShownFound<'_> {
    fn json(&self) -> Result<Box<RawValue>, serde_json::Error> {
        to_raw_value(&BTreeMap::from([("credentials", self.0)]))
    }

    fn table(&self) -> Table {
        let expires = self.0.iter().any(|found| found.expiry_date.is_some());
        let links = self.0.iter().any(|found| found.expiring_link.is_some());
        let mut heads = vec!["NAME", "CREATED"];
        heads.extend(expires.then_some("EXPIRES"));
        heads.extend(links.then_some("BECAUSE OF"));
        let row = |found: &FoundCredential| {
            let mut row = vec![found.name.clone(), found.version_created_at.clone()];
            if expires {
                row.push(found.expiry_date.clone().unwrap_or_default());
            }
            if links {
                let link = found.expiring_link.as_ref();
                row.push(link.map(|link| link.name.clone()).unwrap_or_default());
            }
            row
        };
        Table::Rows {
            rows: self.0.iter().map(row).collect(),
            heads,
        }
    }
}

fn fields(version: &CredentialVersion) -> Vec<(String, String)> {
    let mut fields = vec![
        ("name", version.name.clone()),
        ("type", version.credential_type.clone()),
        ("id", version.id.clone()),
        ("created", version.version_created_at.clone()),
    ];
    if let Some(date) = &version.expiry_date {
        fields.push(("expires", date.clone()));
    }
    let facts = [
        ("transitional", version.transitional),
        ("certificate authority", version.certificate_authority),
        ("self-signed", version.self_signed),
        ("generated", version.generated),
    ];
    fields.extend(facts.into_iter().filter_map(|(name, fact)| {
        let word = if fact? { "yes" } else { "no" };
        Some((name, word.to_owned()))
    }));
    if let Some(metadata) = &version.metadata {
        fields.push(("metadata", metadata.expose().to_owned()));
    }
    let mut fields: Vec<_> = fields
        .into_iter()
        .map(|(name, text)| (name.to_owned(), text))
        .collect();
    match version.value.members() {
        // The keys of a json value are arbitrary and could collide with the fields above.
        Some(parts) if version.credential_type != "json" => {
            fields.extend(
                parts
                    .iter()
                    .map(|(name, part)| (name.clone(), part.plain().to_string())),
            );
        }
        _ => fields.push(("value".to_owned(), version.value.plain().to_string())),
    }
    fields
}
