//! The versions of a credential that count now.

use crate::{
    Failure,
    credential::{Credentials, LookupName, StoredVersion},
    ports::{ReadVersions, VersionSelection},
};

/// What [`VersionSelection::Current`] chooses.
#[derive(Default)]
pub(super) struct CurrentVersions {
    /// The newest one that is not transitional.
    pub(super) in_use: Option<StoredVersion>,
    /// The transitional one.
    pub(super) transitional: Option<StoredVersion>,
}

impl CurrentVersions {
    /// Tells chosen versions apart.
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

    /// What was read, so that it can be read again when something that was made from it is written.
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
    /// The versions of a credential that count now; none when there is no such credential.
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

    /// Whether all is still read as it was.
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
