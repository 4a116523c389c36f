//! Rotation of a CA without downtime, in four steps.
//!
//! No state is stored between steps. The stage follows from the CA's versions, the transitional flag, and the signers of the
//! certificates below. Any client can therefore continue a rotation.
//!
//! | Stage | The CA's versions | Next step |
//! |---|---|---|
//! | [`NotBegun`](Stage::NotBegun) | no version is transitional | [`Introduce`](Step::Introduce) |
//! | [`Introduced`](Stage::Introduced) | the latest version is transitional, so an older version signs | [`Switch`](Step::Switch) |
//! | [`Switched`](Stage::Switched) | a version older than the signing version is transitional, and it signed certificates in use | [`Renew`](Step::Renew) |
//! | [`Renewed`](Stage::Renewed) | the same, but the transitional version signed no certificate in use | [`Retire`](Step::Retire) |
//!
//! After the last step, no version is transitional, so the stage is [`NotBegun`](Stage::NotBegun) again.

use std::collections::{HashMap, HashSet};

use serde::Serialize;

use super::certificates::{
    BulkRegenerate, CertificateSummary, IssuedRecord, ListedVersion, RegenerateCertificate,
    first_certificate,
};
use crate::{Client, CredentialVersion, Error};

/// The stage of a rotation.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// No rotation is in progress.
    NotBegun,
    /// A new version exists, but does not sign yet. Its certificate is being distributed to clients.
    Introduced,
    /// The new version signs. The old version signed some certificates in use.
    Switched,
    /// The old version signed no certificate in use. The regenerated certificates are being deployed.
    Renewed,
}

impl Stage {
    /// Returns the next step.
    #[must_use]
    pub fn next(self) -> Step {
        match self {
            Self::NotBegun => Step::Introduce,
            Self::Introduced => Step::Switch,
            Self::Switched => Step::Renew,
            Self::Renewed => Step::Retire,
        }
    }

    /// Returns whether a rotation at this stage has completed the step.
    #[must_use]
    pub fn has_completed(self, step: Step) -> bool {
        match step {
            Step::Retire => self != Self::Renewed,
            step => self.next().number() > step.number(),
        }
    }
}

/// A step from one stage to the next.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// Add a transitional version, so that clients can trust it before it signs.
    Introduce,
    /// Move the transitional flag to the old version, so that the new one signs.
    Switch,
    /// Regenerate everything that the CA signed.
    Renew,
    /// Clear the flag, so that the server no longer returns the old version.
    Retire,
}

impl Step {
    /// All steps in order.
    pub const ALL: [Self; 4] = [Self::Introduce, Self::Switch, Self::Renew, Self::Retire];

    /// Returns the number of the step, from 1.
    #[must_use]
    pub fn number(self) -> usize {
        self as usize + 1
    }
}

/// The observed state of a CA's rotation.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Rotation {
    /// The credential's name, in its stored case.
    pub name: String,
    /// The stage.
    pub stage: Stage,
    /// The id of the signing version.
    pub signing_version: String,
    /// The id of the transitional version.
    pub transitional_version: Option<String>,
    /// The names of credentials whose certificate in use was not signed by the signing version, directly or through another CA.
    /// Determined only at [`Stage::Switched`]; otherwise empty.
    pub outstanding: Vec<String>,
    /// The PEM certificates of the active and the transitional version, which clients must trust at this stage.
    pub trusted: String,
    certificate_id: String,
}

impl Rotation {
    /// Determines the state of a CA's rotation.
    pub async fn observe(client: &Client, name: &str) -> Result<Self, RotationError> {
        let summary = client.certificate(name).await?;
        let (signing, transitional, stage) = versions(&summary)?;
        let current = client.certificate_versions(&summary.id, true).await?;
        let trusted: Vec<_> = current.iter().map(certificates).collect();
        let mut rotation = Self {
            name: summary.name.clone(),
            stage,
            signing_version: signing.id.clone(),
            transitional_version: transitional.map(|version| version.id.clone()),
            outstanding: Vec::new(),
            trusted: trusted.concat(),
            certificate_id: summary.id.clone(),
        };
        if rotation.stage == Stage::Switched {
            let signing = trusted.into_iter().next().unwrap_or_default();
            rotation.outstanding = outstanding(client, summary, signing).await?;
            if rotation.outstanding.is_empty() {
                rotation.stage = Stage::Renewed;
            }
        }
        Ok(rotation)
    }

    /// Takes the next step and returns the names of the regenerated credentials.
    ///
    /// The step follows from the observed state, and the request is unconditional, so call [`Rotation::observe`] immediately
    /// before. If another client has continued the rotation since then:
    ///
    /// - [`Step::Introduce`] is refused.
    /// - [`Step::Switch`] has no effect.
    /// - [`Step::Renew`] regenerates everything again.
    /// - [`Step::Retire`] clears any transitional flag. In a new rotation, the new version then signs before clients trust it.
    ///
    /// A step may have been taken despite an error, if the response was lost or the server lost its database (503). Observe the
    /// rotation again after an error.
    pub async fn advance(&self, client: &Client) -> Result<Vec<String>, Error> {
        let id = &self.certificate_id;
        match self.stage.next() {
            Step::Introduce => {
                let options = RegenerateCertificate {
                    set_as_transitional: true,
                    ..RegenerateCertificate::default()
                };
                client.regenerate_certificate(id, &options).await?;
            }
            Step::Switch => {
                let old = &self.signing_version;
                client.move_transitional_version(id, Some(old)).await?;
            }
            Step::Renew => {
                let selection = BulkRegenerate {
                    signed_by: Some(self.name.clone()),
                    ..BulkRegenerate::default()
                };
                let regenerated = client.regenerate_all(&selection).await?;
                return Ok(regenerated.regenerated_credentials);
            }
            Step::Retire => {
                client.move_transitional_version(id, None).await?;
            }
        }
        Ok(Vec::new())
    }
}

/// The reason why the state of a rotation can't be determined.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RotationError {
    /// The certificate is not a CA certificate.
    #[error("{0} is not a CA; regenerate it instead")]
    NoAuthority(String),
    /// The only version is transitional.
    #[error(
        "{0} has only a transitional version, which does not sign; run `keywright certificates transitional {0} --clear` first"
    )]
    NothingSigns(String),
    /// The caller may not read a certificate below the CA, so its signer is unknown.
    #[error(
        "could not read {name}, which {authority} signed, to check whether it was regenerated; the operation `read` is required"
    )]
    Unreadable {
        /// The certificate.
        name: String,
        /// The CA above it.
        authority: String,
    },
    /// A request failed.
    #[error(transparent)]
    Request(#[from] Error),
}

/// Returns the signing version of a CA, its transitional version, and the stage without a check of the signed certificates.
fn versions(
    summary: &CertificateSummary,
) -> Result<(&ListedVersion, Option<&ListedVersion>, Stage), RotationError> {
    let versions = &summary.versions;
    let signing = versions.iter().find(|version| !version.transitional);
    let signing = signing.ok_or_else(|| RotationError::NothingSigns(summary.name.clone()))?;
    if !signing.certificate_authority {
        return Err(RotationError::NoAuthority(summary.name.clone()));
    }
    let transitional = versions.iter().position(|version| version.transitional);
    let stage = match transitional {
        None => Stage::NotBegun,
        // Versions are listed newest first.
        Some(0) => Stage::Introduced,
        Some(_) => Stage::Switched,
    };
    let transitional = transitional.and_then(|index| versions.get(index));
    Ok((signing, transitional, stage))
}

/// Returns the PEM certificates of a version.
fn certificates(version: &CredentialVersion) -> String {
    version.public_field("certificate").unwrap_or_default()
}

/// Returns the credentials below a CA whose active certificate was not signed by the active version of their own CA. Omits the
/// credentials below an outstanding CA, because they are regenerated together with it.
async fn outstanding(
    client: &Client,
    root: CertificateSummary,
    signing: String,
) -> Result<Vec<String>, RotationError> {
    let mut found = Vec::new();
    let mut seen = HashSet::from([root.name.to_lowercase()]);
    let mut authorities = vec![(root, signing)];
    while let Some((authority, signing)) = authorities.pop() {
        let others = outstanding_issued(client, &authority, &signing, &mut seen).await?;
        found.extend(others);
        for name in &authority.signs {
            if seen.contains(&name.to_lowercase()) {
                continue;
            }
            let child = readable(client.certificate(name).await, name, &authority)?;
            // The certificate may be listed because of an older version, and a CA below may have signed the latest one.
            let newest = child.versions.first();
            let is_transitional = newest.is_some_and(|newest| newest.transitional);
            if !is_transitional && !child.signed_by.eq_ignore_ascii_case(&authority.name) {
                continue;
            }
            let current = client.certificate_versions(&child.id, true).await;
            let current = readable(current, name, &authority)?;
            let Some(in_use) = current.first() else {
                continue;
            };
            // The signing CA comes first.
            let signer = first_certificate(&in_use.public_field("ca").unwrap_or_default());
            let is_outstanding = signer != first_certificate(&signing);
            // The summary names only the signer of the latest version.
            if is_transitional
                && is_outstanding
                && !has_certificate(client, &authority, &signer).await?
            {
                continue;
            }
            seen.insert(name.to_lowercase());
            if is_outstanding {
                found.push(child.name);
            } else if !child.signs.is_empty() || !child.issued.is_empty() {
                authorities.push((child, certificates(in_use)));
            }
        }
    }
    found.sort_unstable();
    Ok(found)
}

/// Returns whether a stored version of the CA has this certificate.
async fn has_certificate(
    client: &Client,
    authority: &CertificateSummary,
    certificate: &str,
) -> Result<bool, Error> {
    let mut versions = client
        .certificate_versions(&authority.id, false)
        .await?
        .into_iter();
    Ok(versions.any(|version| first_certificate(&certificates(&version)) == certificate))
}

/// Returns the credentials of other types whose certificate was not signed by the active version of the CA.
async fn outstanding_issued(
    client: &Client,
    authority: &CertificateSummary,
    signing: &str,
    seen: &mut HashSet<String>,
) -> Result<Vec<String>, RotationError> {
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
        let record = record.ok_or_else(|| RotationError::Unreadable {
            name: issued.name.clone(),
            authority: authority.name.clone(),
        })?;
        if !is_issued_by(client, record, signing, &mut is_signing).await? {
            found.push(issued.name.clone());
        }
    }
    Ok(found)
}

/// Returns whether the recorded issuer has this certificate. `known` caches the results by version.
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
        Ok(version) => first_certificate(&certificates(&version)) == first_certificate(signing),
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
) -> Result<T, RotationError> {
    response.map_err(|failed| {
        if failed.is_not_found() {
            RotationError::Unreadable {
                name: name.to_owned(),
                authority: authority.name.clone(),
            }
        } else {
            failed.into()
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Versions, newest first: `t` is transitional, `s` is not.
    fn summary(versions: &str, is_authority: bool) -> CertificateSummary {
        let versions = versions.chars().enumerate().map(|(index, kind)| {
            serde_json::json!({
                "id": index.to_string(),
                "expiry_date": "",
                "transitional": kind == 't',
                "certificate_authority": is_authority,
                "self_signed": true,
            })
        });
        let summary = serde_json::json!({
            "id": "id", "name": "/ca", "signed_by": "/ca", "signs": [],
            "versions": versions.collect::<Vec<_>>(),
        });
        serde_json::from_value(summary).unwrap()
    }

    #[test]
    fn the_stage_follows_from_the_order_of_versions_and_the_flag() {
        let cases = [
            ("s", Stage::NotBegun, "0", None),
            ("sss", Stage::NotBegun, "0", None),
            ("ts", Stage::Introduced, "1", Some("0")),
            ("tss", Stage::Introduced, "1", Some("0")),
            ("st", Stage::Switched, "0", Some("1")),
            // The CA was regenerated again after or before the flag moved.
            ("sst", Stage::Switched, "0", Some("2")),
            ("sts", Stage::Switched, "0", Some("1")),
        ];
        for (versions, stage, signing, transitional) in cases {
            let summary = summary(versions, true);
            let (found, flagged, found_stage) = super::versions(&summary).unwrap();
            assert_eq!(found_stage, stage, "{versions}");
            assert_eq!(found.id, signing, "{versions}");
            let flagged = flagged.map(|version| version.id.as_str());
            assert_eq!(flagged, transitional, "{versions}");
        }
    }

    #[test]
    fn the_steps_pass_through_all_stages_in_order() {
        let stages = [
            Stage::NotBegun,
            Stage::Introduced,
            Stage::Switched,
            Stage::Renewed,
        ];
        assert_eq!(stages.map(Stage::next), Step::ALL);
        assert_eq!(Step::ALL.map(Step::number), [1, 2, 3, 4]);
        for (index, stage) in stages.into_iter().enumerate() {
            let behind = Step::ALL.map(|step| stage.has_completed(step));
            let mut expected = [false; 4];
            expected[..index].fill(true);
            expected[3] = index < 3;
            assert_eq!(behind, expected, "{stage:?}");
        }
    }
}
