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
    /// Returns versions of a certificate, in the order of the selection.
    ///
    /// # Errors
    /// [`Failure::NotFound`] if no certificate has this id; or if a version can't be read or decrypted.
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

    /// Permits a caller to perform an operation on the certificate with this id, and returns the chosen versions of it,
    /// still encrypted, at least one.
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

    /// Permits a caller to perform an operation on the certificate with this id. Reads only its name: otherwise the response
    /// time would reveal whether a certificate exists that the caller may not read.
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

    /// Returns versions of a certificate, still encrypted, at least one.
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

/// Returns the versions if they are a certificate's and there is at least one.
fn certificates_alone(versions: Vec<StoredVersion>) -> Result<Vec<StoredVersion>, Failure> {
    match versions.first() {
        Some(version) if version.credential_type.is_certificate() => Ok(versions),
        _ => Err(Failure::NotFound),
    }
}
