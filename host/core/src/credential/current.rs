//! The active and the transitional version of a credential.

use crate::{
    Failure,
    credential::{Credentials, LookupName, StoredVersion},
    ports::{ReadVersions, VersionSelection},
};

/// The versions that [`VersionSelection::Current`] chooses.
#[derive(Default)]
pub(super) struct CurrentVersions {
    /// The active version: the newest that is not transitional.
    pub(super) in_use: Option<StoredVersion>,
    /// The transitional version.
    pub(super) transitional: Option<StoredVersion>,
}

impl CurrentVersions {
    /// Classifies the chosen versions.
    pub(super) fn new(chosen: Vec<StoredVersion>) -> Self {
        let mut current = Self::default();
        for version in chosen {
            if version.is_transitional {
                current.transitional = Some(version);
            } else {
                current.in_use = Some(version);
            }
        }
        current
    }

    /// Returns a record of the read versions, to check that they are unchanged when a dependent version is written.
    pub(super) fn as_read(&self, name: &LookupName) -> ReadVersions {
        let versions = self.in_use.iter().chain(&self.transitional);
        ReadVersions {
            name: name.clone(),
            selection: VersionSelection::Current,
            ids: versions.map(|version| version.id).collect(),
        }
    }
}

impl Credentials {
    /// Returns the current versions of a credential; empty if it does not exist.
    pub(super) async fn current_versions(
        &self,
        name: &LookupName,
    ) -> Result<CurrentVersions, Failure> {
        let chosen = self
            .repository
            .versions_by_name(name, VersionSelection::Current)
            .await?;
        Ok(CurrentVersions::new(chosen))
    }

    /// Returns whether all these versions are unchanged.
    pub(super) async fn are_unchanged(&self, unchanged: &[ReadVersions]) -> Result<bool, Failure> {
        for read in unchanged {
            let versions = self
                .repository
                .versions_by_name(&read.name, read.selection)
                .await?;
            if !versions
                .iter()
                .map(|version| version.id)
                .eq(read.ids.iter().copied())
            {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
