//! Finds credentials that the signing version of a CA did not sign.

use std::collections::{HashMap, HashSet};

use super::{RotationFailed, certificate};
use crate::{
    Client, Error,
    api::certificates::{CertificateSummary, IssuedRecord},
    pem::first_certificate,
};

/// Returns the credentials below a CA whose active certificate the active version of their own CA did not sign. Omits everything
/// below such a credential, because it is regenerated together with it.
pub(super) async fn outstanding(
    client: &Client,
    root: CertificateSummary,
    signing: String,
) -> Result<Vec<String>, RotationFailed> {
    let mut found = Vec::new();
    let mut seen = HashSet::from([root.name.to_lowercase()]);
    let mut authorities = vec![(root, signing)];
    while let Some((authority, signing)) = authorities.pop() {
        let others = outstanding_issued(client, &authority, &signing, &mut seen).await?;
        found.extend(others);
        for name in &authority.signs {
            if !seen.insert(name.to_lowercase()) {
                continue;
            }
            let child = readable(client.certificate(name).await, name, &authority)?;
            // The certificate may be listed because of an older version. The signer of the latest version counts.
            if !child.signed_by.eq_ignore_ascii_case(&authority.name) {
                continue;
            }
            let current = client.current_certificate_versions(&child.id).await;
            let current = readable(current, name, &authority)?;
            let Some(in_use) = current.first() else {
                continue;
            };
            // The signing CA comes first.
            let authorities_of_child = in_use.public_field("ca").unwrap_or_default();
            if first_certificate(&authorities_of_child) != first_certificate(&signing) {
                found.push(child.name);
            } else if !child.signs.is_empty() || !child.issued.is_empty() {
                let certificate = certificate(in_use);
                authorities.push((child, certificate));
            }
        }
    }
    found.sort_unstable();
    Ok(found)
}

/// Returns the credentials of other types whose certificate the active version of the CA did not sign.
async fn outstanding_issued(
    client: &Client,
    authority: &CertificateSummary,
    signing: &str,
    seen: &mut HashSet<String>,
) -> Result<Vec<String>, RotationFailed> {
    let mut found = Vec::new();
    let mut is_signing = HashMap::new();
    let in_use = authority.versions.iter().find(|one| !one.transitional);
    if let Some(in_use) = in_use {
        is_signing.insert(in_use.id.clone(), true);
    }
    for issued in &authority.issued {
        if !seen.insert(issued.name.to_lowercase()) {
            continue;
        }
        let record = issued.record.as_ref();
        let record = record.ok_or_else(|| RotationFailed::Unreadable {
            name: issued.name.clone(),
            authority: authority.name.clone(),
        })?;
        if !is_issued_by(client, record, signing, &mut is_signing).await? {
            found.push(issued.name.clone());
        }
    }
    Ok(found)
}

/// Whether the recorded issuer has this certificate. `known` caches the results by version.
async fn is_issued_by(
    client: &Client,
    record: &IssuedRecord,
    signing: &str,
    known: &mut HashMap<String, bool>,
) -> Result<bool, Error> {
    let Some(id) = &record.issuer_version_id else {
        return Ok(false);
    };
    if let Some(known) = known.get(id) {
        return Ok(*known);
    }
    let has_certificate = match client.version_by_id(id).await {
        Ok(version) => {
            let certificate = version.public_field("certificate").unwrap_or_default();
            first_certificate(&certificate) == first_certificate(signing)
        }
        Err(failed) if failed.is_not_found() => false,
        Err(failed) => return Err(failed),
    };
    known.insert(id.clone(), has_certificate);
    Ok(has_certificate)
}

fn readable<T>(
    response: Result<T, Error>,
    name: &str,
    authority: &CertificateSummary,
) -> Result<T, RotationFailed> {
    response.map_err(|failed| {
        if failed.is_not_found() {
            RotationFailed::Unreadable {
                name: name.to_owned(),
                authority: authority.name.clone(),
            }
        } else {
            failed.into()
        }
    })
}
