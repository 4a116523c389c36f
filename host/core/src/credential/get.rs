//! Reading credentials by id and by name.

use uuid::Uuid;

use crate::{
    Failure,
    credential::{CredentialVersion, Credentials, LookupName},
    ports::VersionSelection,
};

impl Credentials {
    /// One version by its id.
    ///
    /// # Errors
    /// [`Failure::NotFound`], or when it can't be read or decrypted.
    pub async fn by_id(&self, id: Uuid) -> Result<CredentialVersion, Failure> {
        let stored = self
            .repository
            .version_by_id(id)
            .await?
            .ok_or(Failure::NotFound)?;
        self.presented(self.open(stored)?)
    }

    /// Versions of one credential, in the order of the selection.
    ///
    /// # Errors
    /// [`Failure::NotFound`] when there are none, or when one can't be read or decrypted.
    pub async fn by_name(
        &self,
        name: &LookupName,
        selection: VersionSelection,
    ) -> Result<Vec<CredentialVersion>, Failure> {
        let stored = self.repository.versions_by_name(name, selection).await?;
        if stored.is_empty() {
            return Err(Failure::NotFound);
        }
        stored
            .into_iter()
            .map(|version| self.presented(self.open(version)?))
            .collect()
    }
}
