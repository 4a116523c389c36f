//! Deleting one version of a certificate.

use uuid::Uuid;

use super::child_versions::RotationStep;
use crate::{
    Failure,
    authorization::Caller,
    credential::{CredentialVersion, Credentials, service::MAKINGS_MAX},
    permission::Operation,
    ports::VersionDeleted,
};

impl Credentials {
    /// Deletes one version of a certificate and returns it.
    ///
    /// # Errors
    /// [`Failure::NotFound`] if the certificate has no such version; [`Failure::OnlyVersion`] if it has no other; or if the
    /// version can't be decrypted. The version is not deleted then.
    pub async fn delete_certificate_version(
        &self,
        caller: &Caller,
        certificate_id: Uuid,
        version_id: Uuid,
    ) -> Result<CredentialVersion, Failure> {
        let permit = self
            .permit_certificate(caller, Operation::Delete, certificate_id)
            .await?
            .opening_what_it_deletes();
        let version = self
            .repository
            .version_by_id(version_id)
            .await?
            .filter(|version| version.credential_id == certificate_id)
            .ok_or(Failure::NotFound)?;
        let version = self.open(&permit, version).await?;
        let version = version.into_version(&permit);
        for _ in 0..MAKINGS_MAX {
            let additions = self
                .child_versions(&permit, certificate_id, RotationStep::Delete(version_id))
                .await?;
            let deleted = self
                .repository
                .delete_version(certificate_id, version_id, additions)
                .await?;
            match deleted {
                VersionDeleted::Absent => return Err(Failure::NotFound),
                VersionDeleted::Changed => {}
                VersionDeleted::Deleted => {
                    permit.disclosed_version(certificate_id, version_id);
                    return Ok(version);
                }
                VersionDeleted::IsOnly => return Err(Failure::OnlyVersion),
            }
        }
        Err(Failure::Contended)
    }
}
