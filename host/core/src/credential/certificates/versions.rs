//! Reading the versions of a certificate.

use uuid::Uuid;

use crate::{
    Failure,
    credential::{CredentialVersion, Credentials, StoredVersion},
    ports::VersionSelection,
};

impl Credentials {
    /// Versions of a certificate, in the order of the selection.
    ///
    /// # Errors
    /// [`Failure::NotFound`] when nothing has this id, or what has it is no certificate; or when a version can't be read or
    /// decrypted.
    pub async fn certificate_versions(
        &self,
        certificate_id: Uuid,
        selection: VersionSelection,
    ) -> Result<Vec<CredentialVersion>, Failure> {
        self.stored_certificate_versions(certificate_id, selection)
            .await?
            .into_iter()
            .map(|version| self.presented(self.open(version)?))
            .collect()
    }

    /// The same, still encrypted. There is at least one.
    pub(super) async fn stored_certificate_versions(
        &self,
        certificate_id: Uuid,
        selection: VersionSelection,
    ) -> Result<Vec<StoredVersion>, Failure> {
        let versions = self
            .repository
            .versions_by_credential(certificate_id, selection)
            .await?;
        match versions.first() {
            Some(version) if version.credential_type.is_certificate() => Ok(versions),
            _ => Err(Failure::NotFound),
        }
    }
}
