//! Reading credentials by id and by name.

use std::task::Poll;

use uuid::Uuid;

use crate::{
    Failure,
    authorization::{Caller, Permit, ReadSources},
    credential::{CredentialVersion, Credentials, LookupName, StoredVersion},
    ports::{CredentialKey, VersionKey, VersionSelection},
};

impl Credentials {
    /// One version by its id.
    ///
    /// # Errors
    /// [`Failure::NotFound`], or when it can't be read or decrypted.
    pub async fn by_id(&self, caller: &Caller, id: Uuid) -> Result<CredentialVersion, Failure> {
        // The name alone at first: how long it takes to read what the caller may not would tell that it is there.
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

    /// Versions of one credential, in the order of the selection.
    ///
    /// # Errors
    /// [`Failure::NotFound`] when there are none, or when one can't be read or decrypted.
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

    /// Versions of one credential, still encrypted, with memory reserved for a response that has them.
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

    /// As [`Credentials::stored_for_response`], once the versions that [`first_of`] chooses are read: as many as most credentials
    /// have. Only if there are more, their size is looked up before they are read.
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
            // Versions may have been added since. If the oldest were cut off for them, the read would show a state that
            // never was.
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

    /// What callers get of these versions.
    pub(super) async fn all_presented(
        &self,
        permit: &Permit<'_>,
        stored: Vec<StoredVersion>,
    ) -> Result<Vec<CredentialVersion>, Failure> {
        let are_many = stored.len() > VERSIONS_READ_FIRST as usize;
        let mut presented = Vec::with_capacity(stored.len());
        for version in stored {
            if are_many {
                yield_now().await;
            }
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

/// How many versions of a selection are read before their size is known; `None`: the current ones, which are few.
fn first_of(selection: VersionSelection) -> Option<u32> {
    match selection {
        VersionSelection::All => Some(VERSIONS_READ_FIRST + 1),
        VersionSelection::Current => None,
        VersionSelection::Newest(count) => Some(count.min(VERSIONS_READ_FIRST + 1)),
    }
}

/// The size of a response with this many versions, in bytes. Each has its name, type and times in addition to its encrypted part.
fn rendered_bytes(ciphertext_bytes: usize, count: usize) -> usize {
    ciphertext_bytes.saturating_add(count.saturating_mul(RENDERED_FRAME_BYTES))
}

/// Yields to the scheduler so that other requests can run.
async fn yield_now() {
    let mut has_yielded = false;
    std::future::poll_fn(|context| {
        if std::mem::replace(&mut has_yielded, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// How many versions are read before it is known how large they are. Each has at most a value of
/// [`VALUE_BYTES_MAX`](super::VALUE_BYTES_MAX) and little more.
const VERSIONS_READ_FIRST: u32 = 16;

/// The most bytes that a version adds to a response, not counting its value and its metadata.
const RENDERED_FRAME_BYTES: usize = 640;
