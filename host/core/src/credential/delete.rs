//! Deleting a credential with all its versions.

use crate::{
    Failure,
    authorization::Caller,
    credential::{Credentials, LookupName},
    permission::Operation,
};

impl Credentials {
    /// Deletes a credential with all its versions. Permissions on its name stay.
    ///
    /// # Errors
    /// [`Failure::NotFound`] if it does not exist.
    pub async fn delete(&self, caller: &Caller, name: &LookupName) -> Result<(), Failure> {
        let permit = self
            .authorization
            .permit(caller, Operation::Delete, name)
            .await?;
        // An absent credential costs two reads and no transaction, as one that is stored in a casing that the caller may not delete.
        let stored = self.repository.stored_name(name).await?;
        stored.ok_or(Failure::NotFound)?;
        let deleted = self.repository.delete(name).await?;
        permit.touched(deleted.ok_or(Failure::NotFound)?);
        Ok(())
    }
}
