//! Reading credentials by id and by name.

use uuid::Uuid;

use crate::{
    Failure,
    authorization::{Caller, Permit, ReadSources},
    credential::{CredentialVersion, Credentials, LookupName, StoredVersion},
    pace::Pace,
    ports::{CredentialKey, VersionKey, VersionSelection},
};

impl Credentials {
    /// Returns a version by its id.
    ///
    /// # Errors
    /// [`Failure::NotFound`], or if it can't be read or decrypted.
    pub async fn by_id(&self, caller: &Caller, id: Uuid) -> Result<CredentialVersion, Failure> {
        // Reads only the name before the decision: the time to read the version would reveal that it exists.
        let name = self.repository.name_of_version(id).await?;
        let (authorization, sources) = (&self.authorization, self.read_sources());
        let Some(name) = name.map(|name| name.lookup()) else {
            let refusing = authorization.refuse_absent_version(caller, sources, id);
            return Err(refusing.await);
        };
        let (permit, stored) = authorization
            .permit_read(caller, sources, &name, VersionKey::Id(id))
            .await?;
        let stored = stored.into_iter().next().ok_or(Failure::NotFound)?;
        let version = self.open(&permit, stored).await?;
        self.presented(&permit, version)
    }

    /// Returns versions of one credential, in the order of the selection.
    ///
    /// # Errors
    /// [`Failure::NotFound`] if there are none, or an error if one can't be read or decrypted.
    pub async fn by_name(
        &self,
        caller: &Caller,
        name: &LookupName,
        selection: VersionSelection,
    ) -> Result<Vec<CredentialVersion>, Failure> {
        let first = match first_of(selection) {
            None => VersionKey::Current,
            Some(count) => VersionKey::Newest(count),
        };
        let (permit, first) = self
            .authorization
            .permit_read(caller, self.read_sources(), name, first)
            .await?;
        let stored = self
            .completed_for_response(caller, CredentialKey::Name(name), selection, first)
            .await?;
        if stored.is_empty() {
            return Err(Failure::NotFound);
        }
        self.all_presented(&permit, stored).await
    }

    /// Returns versions of one credential, still encrypted, and reserves the memory for a response with them.
    ///
    /// # Errors
    /// As for [`Caller::reserve`].
    pub(super) async fn stored_for_response(
        &self,
        caller: &Caller,
        credential: CredentialKey<'_>,
        selection: VersionSelection,
    ) -> Result<Vec<StoredVersion>, Failure> {
        let first = first_of(selection).map_or(VersionSelection::Current, VersionSelection::Newest);
        let first = self.stored(credential, first).await?;
        self.completed_for_response(caller, credential, selection, first)
            .await
    }

    /// As [`Credentials::stored_for_response`], with the versions that [`first_of`] selects already read. Most credentials have
    /// no more. If there are more, their size is looked up before they are read.
    async fn completed_for_response(
        &self,
        caller: &Caller,
        credential: CredentialKey<'_>,
        selection: VersionSelection,
        stored: Vec<StoredVersion>,
    ) -> Result<Vec<StoredVersion>, Failure> {
        if stored.len() <= VERSIONS_READ_FIRST as usize {
            let sizes = stored
                .iter()
                .map(|version| version.envelope.ciphertext.len());
            caller.reserve(rendered_bytes(sizes.sum(), stored.len()))?;
            return Ok(stored);
        }
        let count_max = match selection {
            VersionSelection::All => u32::MAX,
            VersionSelection::Current => VERSIONS_READ_FIRST,
            VersionSelection::Newest(count) => count,
        };
        drop(stored);
        let mut reserved_bytes = 0;
        loop {
            let size = self
                .repository
                .size_of_versions(credential, count_max)
                .await?;
            let bytes = rendered_bytes(size.ciphertext_bytes, size.count as usize);
            caller.reserve(bytes.saturating_sub(reserved_bytes))?;
            reserved_bytes = bytes.max(reserved_bytes);
            // Versions may have been added since. If the limit then cut off the oldest, the result would be a state that never
            // existed.
            let limit = size
                .count
                .saturating_add(VERSIONS_READ_FIRST)
                .min(count_max);
            let stored = self
                .stored(credential, VersionSelection::Newest(limit))
                .await?;
            if limit == count_max || stored.len() < limit as usize {
                let sizes = stored
                    .iter()
                    .map(|version| version.envelope.ciphertext.len());
                let bytes = rendered_bytes(sizes.sum(), stored.len());
                caller.reserve(bytes.saturating_sub(reserved_bytes))?;
                return Ok(stored);
            }
        }
    }

    /// Decrypts versions and prepares them for the caller.
    pub(super) async fn all_presented(
        &self,
        permit: &Permit<'_>,
        stored: Vec<StoredVersion>,
    ) -> Result<Vec<CredentialVersion>, Failure> {
        let mut pace = Pace::default();
        let mut presented = Vec::with_capacity(stored.len());
        for version in stored {
            pace.step().await;
            let version = self.open(permit, version).await?;
            presented.push(self.presented(permit, version)?);
        }
        Ok(presented)
    }

    pub(super) fn read_sources(&self) -> ReadSources<'_> {
        ReadSources {
            reads: self.reads.as_ref(),
            repository: self.repository.as_ref(),
        }
    }

    async fn stored(
        &self,
        credential: CredentialKey<'_>,
        selection: VersionSelection,
    ) -> Result<Vec<StoredVersion>, Failure> {
        let repository = &self.repository;
        Ok(match credential {
            CredentialKey::Id(id) => repository.versions_by_credential(id, selection).await,
            CredentialKey::Name(name) => repository.versions_by_name(name, selection).await,
        }?)
    }
}

/// Returns how many versions of a selection to read before their size is known; `None` for the current ones, which are few.
fn first_of(selection: VersionSelection) -> Option<u32> {
    match selection {
        VersionSelection::All => Some(VERSIONS_READ_FIRST + 1),
        VersionSelection::Current => None,
        VersionSelection::Newest(count) => Some(count.min(VERSIONS_READ_FIRST + 1)),
    }
}

/// Returns the size of a response with this many versions, in bytes, including each version's name, type and times.
fn rendered_bytes(ciphertext_bytes: usize, count: usize) -> usize {
    ciphertext_bytes.saturating_add(count.saturating_mul(RENDERED_FRAME_BYTES))
}

/// The number of versions to read before their size is known. Each has a value of at most
/// [`VALUE_BYTES_MAX`](super::VALUE_BYTES_MAX), and little more.
const VERSIONS_READ_FIRST: u32 = 16;

/// The maximum number of bytes that a version adds to a response, without its value and metadata.
const RENDERED_FRAME_BYTES: usize = 640;
