//! Moving the transitional flag of a certificate from version to version.

use uuid::Uuid;

use super::child_versions::RotationStep;
use crate::{
    Failure,
    authorization::{Caller, Permit},
    credential::{CredentialVersion, Credentials, StoredVersion, service::MAKINGS_MAX},
    permission::Operation,
    ports::{TransitionalMoved, TransitionalVersion, VersionSelection},
};

impl Credentials {
    /// Moves the transitional flag of a certificate to a version, or clears it. Returns the active and the transitional
    /// version, if there are any.
    ///
    /// # Errors
    /// [`Failure::NotFound`]; [`Failure::TransitionalVersionRefused`] if the certificate has no such version. Nothing is
    /// changed then.
    pub async fn move_transitional_version(
        &self,
        caller: &Caller,
        certificate_id: Uuid,
        to: TransitionalVersion,
    ) -> Result<Vec<CredentialVersion>, Failure> {
        let newest = VersionSelection::Newest(1);
        let (permit, _) = self
            .permitted_certificate_versions(caller, Operation::Write, certificate_id, newest)
            .await?;
        let moved = self.move_with_children(&permit, certificate_id, to).await?;
        let mut versions = Vec::with_capacity(moved.len());
        for version in moved {
            let version = self.open(&permit, version).await?;
            permit.disclosed_version(version.stored.credential_id, version.stored.id);
            versions.push(version.into_version(&permit));
        }
        Ok(versions)
    }

    async fn move_with_children(
        &self,
        permit: &Permit<'_>,
        certificate_id: Uuid,
        to: TransitionalVersion,
    ) -> Result<Vec<StoredVersion>, Failure> {
        for _ in 0..MAKINGS_MAX {
            let additions = self
                .child_versions(permit, certificate_id, RotationStep::Move(to))
                .await?;
            let moved = self
                .repository
                .move_transitional(certificate_id, to, additions)
                .await?;
            let reason = match (moved, to) {
                (TransitionalMoved::Changed, _) => continue,
                (TransitionalMoved::CredentialAbsent, _) => return Err(Failure::NotFound),
                (TransitionalMoved::Moved(current), _) => return Ok(current),
                (TransitionalMoved::VersionAbsent, TransitionalVersion::Latest) => {
                    "it has no version with a certificate"
                }
                (
                    TransitionalMoved::VersionAbsent,
                    TransitionalVersion::Id(_) | TransitionalVersion::None,
                ) => "version must be the id of one of its versions",
            };
            return Err(Failure::TransitionalVersionRefused(reason));
        }
        Err(Failure::Contended)
    }
}
