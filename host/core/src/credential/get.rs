//! Reading credentials by id and by name.

use uuid::Uuid;

use crate::{
    Failure,
    authorization::Caller,
    credential::{CredentialVersion, Credentials, LookupName},
    permission::Operation,
    ports::VersionSelection,
};

impl Credentials {
    /// One version by its id.
    ///
    /// # Errors
    /// [`Failure::NotFound`], or when it can't be read or decrypted.
    pub async fn by_id(&self, caller: &Caller, id: Uuid) -> Result<CredentialVersion, Failure> {
        // The name alone at first: how long it takes to read what the caller may not would tell that it is there.
        let name = self.repository.name_of_version(id).await?;
        let permit = self
            .authorization
            .permit_stored(caller, Operation::Read, name.as_ref())
            .await?;
        let stored = self.repository.version_by_id(id).await?;
        let stored = stored.ok_or(Failure::NotFound)?;
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
        // One after the other: how long it takes to read what the caller may not would tell that it is there.
        let permit = self
            .authorization
            .permit(caller, Operation::Read, name)
            .await?;
        let stored = self.repository.versions_by_name(name, selection).await?;
        if stored.is_empty() {
            return Err(Failure::NotFound);
        }
        let mut presented = Vec::with_capacity(stored.len());
        for version in stored {
            let version = self.open(&permit, version).await?;
            presented.push(self.presented(&permit, version)?);
        }
        Ok(presented)
    }
}
