//! Reading credentials by id and by name, and searching for them by path or by part of the name.

use chrono::{DateTime, Utc};
use uuid::Uuid;

use crate::{
    Failure,
    authorization::{Caller, Permit, ReadSources},
    credential::{
        CredentialName, CredentialVersion, Credentials, LookupName, PathPrefix, PluginDigest,
        StoredVersion, render::ReadableList,
    },
    pace::Pace,
    permission::Operation,
    ports::{CredentialKey, VersionKey, VersionSelection},
};

impl Credentials {
    /// Returns a version by its id.
    ///
    /// # Errors
    /// [`Failure::NotFound`], or if it can't be read or decrypted.
    pub async fn by_id(&self, caller: &Caller, id: Uuid) -> Result<CredentialVersion, Failure> {
        // Reads only the name before the decision: the time to read the version would reveal that it exists.
        let name = self.store.repository.name_of_version(id).await?;
        let (authorization, sources) = (&self.authorization, self.read_sources());
        let Some(name) = name.map(|name| name.lookup()) else {
            let refusing = authorization.refuse_absent_version(caller, sources, id);
            return Err(refusing.await);
        };
        let (permit, stored) = authorization
            .permit_read(caller, sources, &name, VersionKey::Id(id))
            .await?;
        let stored = stored.into_iter().next().ok_or(Failure::NotFound)?;
        let version = self.store.open(&permit, stored).await?;
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
                .store
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
            let version = self.store.open(permit, version).await?;
            presented.push(self.presented(permit, version)?);
        }
        Ok(presented)
    }

    pub(super) fn read_sources(&self) -> ReadSources<'_> {
        ReadSources {
            reads: self.reads.as_ref(),
            repository: self.store.repository.as_ref(),
        }
    }

    async fn stored(
        &self,
        credential: CredentialKey<'_>,
        selection: VersionSelection,
    ) -> Result<Vec<StoredVersion>, Failure> {
        let repository = &self.store.repository;
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

/// A search for credentials.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Find {
    /// The pattern of the names.
    pub names: FindNames,
    /// Restricts the search to credentials of any type with a certificate whose newest version, transitional or not, expires
    /// at or before this time.
    pub expires_until: Option<DateTime<Utc>>,
}

/// The pattern of the names in a search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FindNames {
    /// Names strictly below this path.
    Below(PathPrefix),
    /// Names that contain this text in lower case. No character is a wildcard.
    Containing(String),
}

/// A credential that a search found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundCredential {
    /// Its name, in the casing of its first writer.
    pub name: CredentialName,
    /// The creation time of its active version; in a search by expiry, of its newest version, transitional or not.
    pub version_created_at: DateTime<Utc>,
    /// In a search by expiry, the expiry of that version.
    pub expires_at: Option<DateTime<Utc>>,
}

/// A credential whose newest, active or transitional version was generated by a plugin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GeneratedCredential {
    /// The credential, with the time of its active version, or of the newest version if none is active.
    pub found: FoundCredential,
    /// Whether the plugin generated the newest version. If not, the plugin's version has already been replaced.
    pub is_newest: bool,
}

impl FindNames {
    /// Returns the pattern for names below a path from a request.
    #[must_use]
    pub fn below(path: &str) -> Self {
        Self::Below(PathPrefix::new(path))
    }

    /// Returns the pattern for names that contain a text from a request.
    #[must_use]
    pub fn containing(text: &str) -> Self {
        Self::Containing(text.to_ascii_lowercase())
    }
}

impl Credentials {
    /// Finds the credentials that the caller may read, newest first. With `expires_within_days`, only credentials of any
    /// type with a certificate that expires within this many times 24 hours, or already has. Sends no query if the caller
    /// may read no credential.
    ///
    /// # Errors
    /// If the query fails.
    pub async fn find(
        &self,
        caller: &Caller,
        names: FindNames,
        expires_within_days: Option<i64>,
    ) -> Result<Vec<FoundCredential>, Failure> {
        let expires_until = expires_within_days.map(|days| self.time_in_days(days));
        let find = Find {
            names,
            expires_until,
        };
        let rules = self.authorization.rules_of(caller).await?;
        if !rules.allow_somewhere(Operation::Read) {
            return Ok(Vec::new());
        }
        let mut found = ReadableList::new(caller, &rules);
        let mut receive = |credential| found.add(credential);
        self.store.repository.find(&find, &mut receive).await?;
        found.finish()
    }

    /// Finds the credentials that the caller may read and of which the plugin with this digest made a version that counts,
    /// newest first.
    ///
    /// # Errors
    /// If the query fails.
    pub async fn find_generated_by(
        &self,
        caller: &Caller,
        digest: &PluginDigest,
        names: &FindNames,
    ) -> Result<Vec<FoundCredential>, Failure> {
        let rules = self.authorization.rules_of(caller).await?;
        if !rules.allow_somewhere(Operation::Read) {
            return Ok(Vec::new());
        }
        let mut found = ReadableList::new(caller, &rules);
        let mut receive = |generated: GeneratedCredential| found.add(generated.found);
        let finding = self
            .store
            .repository
            .generated_by(digest, names, &mut receive);
        finding.await?;
        found.finish()
    }
}
