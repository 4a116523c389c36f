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
        let deleted = self.repository.delete(name).await?;
        permit.touched(deleted.ok_or(Failure::NotFound)?);
        Ok(())
    }
}
