//! Decrypting, encrypting and adding versions, and the active versions of a credential.

use std::sync::Arc;

use crate::{
    Failure,
    authorization::Permit,
    credential::{
        CredentialName, CredentialType, CredentialVersion, LookupName, PluginDigest, Provenance,
        StoredVersion, VersionAttributes,
        content::{Content, check_size},
    },
    ports::{
        AppendCondition, Appended, Clock, CredentialRepository, Identifiers, KeyStatus, NewVersion,
        ReadVersions, SealContext, Sealer, VersionSelection,
    },
};

/// The stored versions. Versions are only decrypted and encrypted here, with a permit for their credential.
#[derive(Clone)]
pub struct VersionStore {
    /// Stores the credentials.
    pub repository: Arc<dyn CredentialRepository>,
    /// Encrypts the values.
    pub sealer: Arc<dyn Sealer>,
    /// The current time.
    pub clock: Arc<dyn Clock>,
    /// Generates the ids of versions.
    pub identifiers: Arc<dyn Identifiers>,
}

/// A version to be written.
pub(super) struct Draft {
    pub(super) name: CredentialName,
    pub(super) credential_type: CredentialType,
    pub(super) attributes: VersionAttributes,
    pub(super) content: Content,
    /// The versions that it was created from, which must be unchanged when it is written.
    pub(super) unchanged: Vec<ReadVersions>,
}

/// A version with its decrypted content.
pub(crate) struct OpenVersion {
    pub(crate) stored: StoredVersion,
    pub(crate) content: Content,
}

impl OpenVersion {
    /// Converts it to the version for the caller.
    pub(super) fn into_version(self, permit: &Permit<'_>) -> CredentialVersion {
        let Self { stored, content } = self;
        permit.record_version(stored.credential_id, stored.id);
        let plugin = stored.attributes.provenance.as_ref();
        let provenance = plugin
            .zip(content.parameters)
            .map(|(plugin, parameters)| Provenance {
                generated_by: PluginDigest::from_stored(plugin.digest.clone()),
                parameters,
                is_imported: stored.attributes.is_generated != Some(true),
            });
        CredentialVersion {
            id: stored.id,
            name: stored.name,
            credential_type: stored.credential_type,
            created_at: stored.created_at,
            metadata: content.metadata,
            value: content.value,
            attributes: stored.attributes,
            provenance,
        }
    }
}

impl VersionStore {
    /// Decrypts a version of the credential that the permit allows to open. Refuses any other version as if it did not exist.
    pub(crate) async fn open(
        &self,
        permit: &Permit<'_>,
        stored: StoredVersion,
    ) -> Result<OpenVersion, Failure> {
        if !permit.opens(&stored.name) {
            return Err(Failure::NotFound);
        }
        let record = SealContext {
            version_id: stored.id,
            name: &stored.name.lookup(),
        };
        let key_id = stored.envelope.key_id;
        if self.sealer.status(key_id) == KeyStatus::Unknown {
            self.sealer.recognize(key_id).await?;
        }
        let plaintext = self.sealer.open(record, &stored.envelope)?;
        Ok(OpenVersion {
            content: Content::from_plaintext(&plaintext)?,
            stored,
        })
    }

    /// Encrypts a draft for the credential that the permit allows to write, and returns a version that is ready to be added.
    pub(super) async fn seal(
        &self,
        permit: &Permit<'_>,
        draft: &Draft,
    ) -> Result<NewVersion, Failure> {
        if !permit.seals(&draft.name) {
            return Err(Failure::WriteNotPermitted);
        }
        check_size(&draft.content.value)?;
        let plaintext = draft
            .content
            .to_plaintext(&draft.name, &draft.credential_type)?;
        let id = self.identifiers.fresh();
        let record = SealContext {
            version_id: id,
            name: &draft.name.lookup(),
        };
        Ok(NewVersion {
            id,
            name: draft.name.clone(),
            credential_type: draft.credential_type.clone(),
            created_at: self.clock.now(),
            attributes: draft.attributes.clone(),
            envelope: self.sealer.seal(record, &plaintext).await?,
        })
    }

    /// Adds a draft if a condition still holds; `None` if one of its inputs has changed.
    pub(super) async fn append(
        &self,
        permit: &Permit<'_>,
        mut draft: Draft,
        condition: AppendCondition,
    ) -> Result<Option<OpenVersion>, Failure> {
        let mut appended = self.append_once(permit, &draft, condition).await?;
        if let Appended::NamedOtherwise(name) = appended {
            draft.name = name;
            appended = self.append_once(permit, &draft, condition).await?;
        }
        match appended {
            Appended::Written(stored) => Ok(Some(OpenVersion {
                stored: *stored,
                content: draft.content,
            })),
            Appended::Outdated => Ok(None),
            Appended::TransitionalExists => Err(Failure::TransitionalExists),
            Appended::TypeDiffers(existing) => Err(Failure::TypeDiffers(existing)),
            // Another caller has since deleted and recreated the credential.
            Appended::NamedOtherwise(_) => Err(Failure::Contended),
            Appended::Changed => match condition {
                AppendCondition::CredentialIs(_) => Err(Failure::NotFound),
                AppendCondition::Always | AppendCondition::NewestIs(_) => Err(Failure::Contended),
            },
        }
    }

    /// Encrypts a draft and adds it if a condition holds.
    pub(super) async fn append_once(
        &self,
        permit: &Permit<'_>,
        draft: &Draft,
        condition: AppendCondition,
    ) -> Result<Appended, Failure> {
        let version = self.seal(permit, draft).await?;
        let appending = self.repository.append(version, condition, &draft.unchanged);
        Ok(appending.await?)
    }

    /// Returns the current versions of a credential; empty if it does not exist.
    pub(super) async fn active_versions(
        &self,
        name: &LookupName,
    ) -> Result<ActiveVersions, Failure> {
        let chosen = self
            .repository
            .versions_by_name(name, VersionSelection::Current)
            .await?;
        Ok(ActiveVersions::new(chosen))
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

/// The versions that [`VersionSelection::Current`] chooses.
#[derive(Default)]
pub(super) struct ActiveVersions {
    /// The active version: the newest that is not transitional.
    pub(super) active: Option<StoredVersion>,
    /// The transitional version.
    pub(super) transitional: Option<StoredVersion>,
}

impl ActiveVersions {
    /// Classifies the chosen versions.
    pub(super) fn new(chosen: Vec<StoredVersion>) -> Self {
        let mut current = Self::default();
        for version in chosen {
            if version.attributes.is_transitional {
                current.transitional = Some(version);
            } else {
                current.active = Some(version);
            }
        }
        current
    }

    /// Returns a record of the read versions, to check that they are unchanged when a dependent version is written.
    pub(super) fn as_read(&self, name: &LookupName) -> ReadVersions {
        let versions = self.active.iter().chain(&self.transitional);
        ReadVersions {
            name: name.clone(),
            selection: VersionSelection::Current,
            ids: versions.map(|version| version.id).collect(),
        }
    }
}

/// Maximum attempts when a concurrent write invalidates the inputs.
pub(super) const WRITE_ATTEMPTS_MAX: usize = 4;
