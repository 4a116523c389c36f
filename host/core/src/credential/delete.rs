//! Deleting a credential with all its versions.

use crate::{
    Failure,
    credential::{Credentials, LookupName},
};

impl Credentials {
    /// Deletes a credential with all its versions. Permissions on its name stay.
    ///
    /// # Errors
    /// [`Failure::NotFound`] when there is none.
    pub async fn delete(&self, name: &LookupName) -> Result<(), Failure> {
        if self.repository.delete(name).await? {
            Ok(())
        } else {
            Err(Failure::NotFound)
        }
    }
}
