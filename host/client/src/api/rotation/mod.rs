//! The rotation of a certificate authority without a connection that fails: four steps, and where a rotation stands.
//!
//! Nothing is remembered between two steps: which versions there are, which of them is transitional, and by which of them
//! the certificates below are signed, say everything. So whoever comes next, from wherever, goes on where the last one
//! stopped.
//!
//! | Stage | The authority's versions | What comes next |
//! |---|---|---|
//! | [`NotBegun`](Stage::NotBegun) | none is transitional | [`Introduce`](Step::Introduce) |
//! | [`Introduced`](Stage::Introduced) | the newest is transitional, so an older one signs | [`Switch`](Step::Switch) |
//! | [`Switched`](Stage::Switched) | one that is older than the one that signs is transitional; it signed some certificates that are in use | [`Renew`](Step::Renew) |
//! | [`Renewed`](Stage::Renewed) | the same, and no certificate that is in use is left that it signed | [`Retire`](Step::Retire) |
//!
//! After the last step none is transitional, as before the first: that a rotation has ended can't be told from that none
//! was begun.

mod outstanding;

use serde::Serialize;

use super::certificates::{
    CertificateSummary, ListedVersion, RegenerateCertificate, TransitionalVersion,
};
use crate::{Client, CredentialVersion, Error};
use outstanding::outstanding;

/// Where the rotation of an authority stands.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// None is under way.
    NotBegun,
    /// There is a new version that does not sign yet. It is being given to whoever trusts the authority.
    Introduced,
    /// The new version signs. Some certificates that are in use are still signed by the old one.
    Switched,
    /// No certificate that is in use is signed by the old version. The renewed ones are being given to who presents them.
    Renewed,
}

impl Stage {
    /// The step that leads on.
    #[must_use]
    pub fn next(self) -> Step {
        match self {
            Self::NotBegun => Step::Introduce,
            Self::Introduced => Step::Switch,
            Self::Switched => Step::Renew,
            Self::Renewed => Step::Retire,
        }
    }

    /// Whether a rotation that stands here has a step behind it. After the last one, none is under way.
    #[must_use]
    pub fn is_behind(self, step: Step) -> bool {
        match step {
            Step::Retire => self != Self::Renewed,
            step => self.next().number() > step.number(),
        }
    }
}

/// What leads from one stage to the next.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// Add a version that is transitional, which others can learn to trust before it signs anything.
    Introduce,
    /// Move the transitional flag to the old version, so that the new one signs.
    Switch,
    /// Regenerate everything that the authority signed.
    Renew,
    /// Clear the flag, so that the old version is no longer handed out.
    Retire,
}

impl Step {
    /// All steps, in their order.
    pub const ALL: [Self; 4] = [Self::Introduce, Self::Switch, Self::Renew, Self::Retire];

    /// Its place among the steps, from 1 on.
    #[must_use]
    pub fn number(self) -> usize {
        match self {
            Self::Introduce => 1,
            Self::Switch => 2,
            Self::Renew => 3,
            Self::Retire => 4,
        }
    }
}

/// The rotation of one authority, as the server tells at one moment.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Rotation {
    /// The credential's name, in the case in which it is stored.
    pub name: String,
    /// Where it stands.
    pub stage: Stage,
    /// The id of the version that signs.
    pub signing_version: String,
    /// The id of the version that is transitional.
    pub transitional_version: Option<String>,
    /// The certificates in use, and the credentials of other types with a certificate, that don't come from the version that
    /// signs, directly or through another authority.
    /// Looked for only once the flag has moved.
    pub outstanding: Vec<String>,
    /// The certificates that the versions in use and in transition have, PEM: what must be trusted at this stage.
    pub trusted: String,
    certificate_id: String,
}

impl Rotation {
    /// Finds out where the rotation of an authority stands.
    ///
    /// # Errors
    /// When the credential can't be rotated, when one that it signed can't be read, and when a request fails.
    pub async fn observe(client: &Client, name: &str) -> Result<Self, RotationFailed> {
        let summary = client.certificate(name).await?;
        let versions = Versions::of(&summary)?;
        let current = client.current_certificate_versions(&summary.id).await?;
        let trusted: Vec<_> = current.iter().map(certificate).collect();
        let mut rotation = Self {
            name: summary.name.clone(),
            stage: versions.stage_before_renewal(),
            signing_version: versions.signing.id.clone(),
            transitional_version: versions.transitional.map(|version| version.id.clone()),
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

    /// Takes the next step, and tells which certificates were regenerated in it.
    ///
    /// The step is that of what was observed, and the server is given no condition: observe shortly before. When someone else
    /// has gone on since then, the server refuses a second transitional version and moves the flag where it is already, but
    /// it regenerates everything once more, and clears the flag of whichever version has it: also that of a new rotation,
    /// whose version then signs before anybody trusts it.
    ///
    /// After an error the step may have been taken all the same, when the answer was lost or the server's database did not
    /// say (503): observe anew.
    ///
    /// # Errors
    /// When the request fails.
    pub async fn advance(&self, client: &Client) -> Result<Vec<String>, Error> {
        let id = &self.certificate_id;
        match self.stage.next() {
            Step::Introduce => {
                let how = RegenerateCertificate {
                    set_as_transitional: true,
                    ..RegenerateCertificate::default()
                };
                client.regenerate_certificate(id, &how).await?;
            }
            Step::Switch => {
                let old = TransitionalVersion::Id(&self.signing_version);
                client.move_transitional_version(id, old).await?;
            }
            Step::Renew => return client.bulk_regenerate(&self.name).await,
            Step::Retire => {
                let none = TransitionalVersion::None;
                client.move_transitional_version(id, none).await?;
            }
        }
        Ok(Vec::new())
    }
}

/// Why nothing can be told of a rotation.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RotationFailed {
    /// Not the certificate of an authority.
    #[error("{0} is no certificate authority, so there is nothing to rotate: regenerate it")]
    NoAuthority(String),
    /// It has nothing but a transitional version.
    #[error(
        "{0} has no version but a transitional one, so none signs: clear the flag first, with `certificates transitional \
         {0} --clear`"
    )]
    NothingSigns(String),
    /// A certificate below the authority is hidden from the caller, and with it by what it is signed.
    #[error(
        "{name}, which {authority} signed, can't be read, so it can't be told whether it was regenerated: the operation \
         read on it is needed"
    )]
    Unreadable {
        /// The certificate.
        name: String,
        /// The authority above it.
        authority: String,
    },
    /// A request failed.
    #[error(transparent)]
    Request(#[from] Error),
}

/// The versions of an authority that matter.
struct Versions<'a> {
    signing: &'a ListedVersion,
    transitional: Option<&'a ListedVersion>,
    is_newest_transitional: bool,
}

impl<'a> Versions<'a> {
    fn of(summary: &'a CertificateSummary) -> Result<Self, RotationFailed> {
        let versions = &summary.versions;
        let signing = versions.iter().position(|version| !version.transitional);
        let transitional = versions.iter().position(|version| version.transitional);
        let signing_version = signing.and_then(|index| versions.get(index));
        let signing_version =
            signing_version.ok_or_else(|| RotationFailed::NothingSigns(summary.name.clone()))?;
        if !signing_version.certificate_authority {
            return Err(RotationFailed::NoAuthority(summary.name.clone()));
        }
        Ok(Self {
            signing: signing_version,
            transitional: transitional.and_then(|index| versions.get(index)),
            // They stand newest first.
            is_newest_transitional: transitional < signing,
        })
    }

    /// The stage, without looking at what the authority signed.
    fn stage_before_renewal(&self) -> Stage {
        match self.transitional {
            None => Stage::NotBegun,
            Some(_) if self.is_newest_transitional => Stage::Introduced,
            Some(_) => Stage::Switched,
        }
    }
}

/// The certificate of a version, PEM with a line feed at its end.
fn certificate(version: &CredentialVersion) -> String {
    let certificate = version.public_member("certificate").unwrap_or_default();
    format!("{}\n", certificate.trim())
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
    fn the_order_of_the_versions_and_the_flag_tell_the_stage() {
        let cases = [
            ("s", Stage::NotBegun, "0", None),
            ("sss", Stage::NotBegun, "0", None),
            ("ts", Stage::Introduced, "1", Some("0")),
            ("tss", Stage::Introduced, "1", Some("0")),
            ("st", Stage::Switched, "0", Some("1")),
            // It was regenerated once more since the flag moved, or before it was.
            ("sst", Stage::Switched, "0", Some("2")),
            ("sts", Stage::Switched, "0", Some("1")),
        ];
        for (versions, stage, signing, transitional) in cases {
            let summary = summary(versions, true);
            let found = Versions::of(&summary).unwrap();
            assert_eq!(found.stage_before_renewal(), stage, "{versions}");
            assert_eq!(found.signing.id, signing, "{versions}");
            let flagged = found.transitional.map(|version| version.id.as_str());
            assert_eq!(flagged, transitional, "{versions}");
        }
    }

    #[test]
    fn what_signs_nothing_can_t_be_rotated() {
        let leaf = summary("s", false);
        let refused = Versions::of(&leaf).err().unwrap();
        assert!(matches!(refused, RotationFailed::NoAuthority(_)));
        let flagged = summary("t", true);
        let refused = Versions::of(&flagged).err().unwrap();
        assert!(matches!(refused, RotationFailed::NothingSigns(_)));
    }

    #[test]
    fn the_steps_lead_through_all_stages_in_their_order() {
        let stages = [
            Stage::NotBegun,
            Stage::Introduced,
            Stage::Switched,
            Stage::Renewed,
        ];
        assert_eq!(stages.map(Stage::next), Step::ALL);
        assert_eq!(Step::ALL.map(Step::number), [1, 2, 3, 4]);
        for (index, stage) in stages.into_iter().enumerate() {
            let behind = Step::ALL.map(|step| stage.is_behind(step));
            let mut expected = [false; 4];
            expected[..index].fill(true);
            expected[3] = index < 3;
            assert_eq!(behind, expected, "{stage:?}");
        }
    }
}
