//! Moving the transitional flag of a certificate from version to version.

use uuid::Uuid;

use crate::{
    Failure,
    credential::{CredentialVersion, Credentials},
    ports::{TransitionalMoved, TransitionalVersion, VersionSelection},
};

impl Credentials {
    /// Moves the transitional flag of a certificate to a version, or takes it away, and answers with its newest version that
    /// is not transitional and the transitional one; either may be absent.
    ///
    /// # Errors
    /// [`Failure::NotFound`]; [`Failure::TransitionalVersionRefused`] when the certificate has no such version: then
    /// nothing is changed.
    pub async fn move_transitional_version(
        &self,
        certificate_id: Uuid,
        to: TransitionalVersion,
    ) -> Result<Vec<CredentialVersion>, Failure> {
        self.stored_certificate_versions(certificate_id, VersionSelection::Newest(1))
            .await?;
        match self
            .repository
            .move_transitional(certificate_id, to)
            .await?
        {
            TransitionalMoved::CredentialAbsent => return Err(Failure::NotFound),
            TransitionalMoved::Moved => {}
            TransitionalMoved::VersionAbsent => {
                return Err(Failure::TransitionalVersionRefused(match to {
                    TransitionalVersion::Latest => "no version of it has a certificate",
                    TransitionalVersion::Id(_) | TransitionalVersion::None => {
                        "version must be the id of one of its own versions"
                    }
                }));
            }
        }
        self.certificate_versions(certificate_id, VersionSelection::Current)
            .await
    }
}
