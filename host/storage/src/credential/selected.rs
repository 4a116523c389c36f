//! Reading the versions of a selection.

use keywright_core::{
    credential::StoredVersion,
    ports::{RepositoryFailure, VersionSelection},
};

use super::SqlCredentialRepository;
use crate::statement::Statement;

impl SqlCredentialRepository {
    /// Runs a statement that reads the versions of a selection.
    pub(super) async fn selected(
        &self,
        query: Statement,
        selection: VersionSelection,
    ) -> Result<Vec<StoredVersion>, RepositoryFailure> {
        let query = match selection {
            VersionSelection::Current => query.short(),
            VersionSelection::Newest(count) if count <= VERSIONS_IN_PLACE_MAX => query.short(),
            VersionSelection::All | VersionSelection::Newest(_) => query,
        };
        self.pools.reader.decode_all(query).await
    }
}

/// Returns the maximum number of versions of a selection. `None` for the current versions, which need another query.
pub(super) fn count_max(selection: VersionSelection) -> Option<i64> {
    match selection {
        VersionSelection::All => Some(i64::MAX),
        VersionSelection::Current => None,
        VersionSelection::Newest(count) => Some(i64::from(count)),
    }
}

/// SQLite: the maximum number of versions that are read in place.
const VERSIONS_IN_PLACE_MAX: u32 = 32;
