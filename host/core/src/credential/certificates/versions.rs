//! Reading the versions of a certificate.

use uuid::Uuid;

use crate::{
    Failure,
    authorization::{Caller, Permit},
    credential::{CredentialVersion, Credentials, StoredVersion},
    permission::Operation,
    ports::{CredentialKey, VersionSelection},
};

impl Credentials {
    /// Versions of a certificate, in the order of the selection.
    ///
    /// # Errors
    /// [`Failure::NotFound`] when nothing has this id, or what has it is no certificate; or when a version can't be read or
    /// decrypted.
    pub async fn certificate_versions(
        &self,
        caller: &Caller,
        certificate_id: Uuid,
        selection: VersionSelection,
    ) -> Result<Vec<CredentialVersion>, Failure> {
        let permit = self
            .permit_certificate(caller, Operation::Read, certificate_id)
            .await?;
        let versions = self
            .stored_for_response(caller, CredentialKey::Id(certificate_id), selection)
            .await?;
        self.all_presented(&permit, certificates_alone(versions)?)
            .await
    }

    /// Lets a caller do one thing with the certificate of this id, and chooses versions of it, still encrypted. There is
    /// at least one.
    pub(super) async fn permitted_certificate_versions<'a>(
        &self,
        caller: &'a Caller,
        operation: Operation,
        certificate_id: Uuid,
        selection: VersionSelection,
    ) -> Result<(Permit<'a>, Vec<StoredVersion>), Failure> {
        let permit = self
            .permit_certificate(caller, operation, certificate_id)
            .await?;
        let versions = self
            .stored_certificate_versions(certificate_id, selection)
            .await?;
        Ok((permit, versions))
    }

    /// Lets a caller do one thing with the certificate of this id. Its name alone is read: how long it takes to read what
    /// the caller may not would tell that it is there.
    pub(super) async fn permit_certificate<'a>(
        &self,
        caller: &'a Caller,
        operation: Operation,
        certificate_id: Uuid,
    ) -> Result<Permit<'a>, Failure> {
        let name = self.repository.name_of_certificate(certificate_id).await?;
        self.authorization
            .permit_stored(caller, operation, name.as_ref())
            .await
    }

    /// Versions of a certificate, still encrypted. There is at least one.
    pub(super) async fn stored_certificate_versions(
        &self,
        certificate_id: Uuid,
        selection: VersionSelection,
    ) -> Result<Vec<StoredVersion>, Failure> {
        let versions = self
            .repository
            .versions_by_credential(certificate_id, selection)
            .await?;
        certificates_alone(versions)
    }
}

/// The versions of a certificate, of which there must be one.
fn certificates_alone(versions: Vec<StoredVersion>) -> Result<Vec<StoredVersion>, Failure> {
    match versions.first() {
        Some(version) if version.credential_type.is_certificate() => Ok(versions),
        _ => Err(Failure::NotFound),
    }
}
