//! Managing single versions of a certificate: adding and deleting versions, and moving the transitional flag. These steps rotate
//! a CA while the certificates that it signed stay in use.

use uuid::Uuid;

use crate::{
    Secret, UseCaseError,
    authorization::{Caller, Permit},
    credential::{
        CredentialType, CredentialVersion, SetCredentials, StoredVersion,
        certificates::{permit_certificate, permit_to_write},
        child_versions::{ChildVersion, ChildVersions, RotationStep},
        set::{CertificateRequest, warn_of_short_key},
        version_store::WRITE_ATTEMPTS_MAX,
    },
    permission::Operation,
    ports::{ReadVersions, TransitionalVersion, VersionChange, VersionChanged, VersionSelection},
};

/// A request to add a version to a certificate.
#[derive(Debug)]
pub struct NewCertificateVersion {
    /// The id of its credential.
    pub certificate_id: Uuid,
    /// The value, as JSON text.
    pub value: Secret,
    /// Whether the version gets the transitional flag.
    pub is_transitional: bool,
}

/// Changes single versions of certificates.
pub struct CaRotation {
    pub(super) set: SetCredentials,
    pub(super) children: ChildVersions,
}

impl CaRotation {
    /// Adds a version with a value from the caller. Whether a server generated the value is unknown, so `is_generated` is
    /// `None`.
    ///
    /// # Errors
    /// [`UseCaseError::NotFound`]; [`UseCaseError::TransitionalExists`]; or if the value breaks a rule for certificates, or has no
    /// `certificate`.
    pub async fn add_version(
        &self,
        caller: &Caller,
        new: NewCertificateVersion,
    ) -> Result<CredentialVersion, UseCaseError> {
        let set = &self.set;
        let (id, newest) = (new.certificate_id, VersionSelection::Newest(1));
        let fields = CertificateRequest::parse(&new.value);
        if matches!(fields, Err(UseCaseError::ValueTooLarge { .. })) {
            permit_to_write(&set.authorization, &set.store, caller, id, newest).await?;
        }
        let fields = fields?;
        if fields.value.certificate.is_none() {
            return Err(UseCaseError::ValueRefused(
                "certificate is required".to_owned(),
            ));
        }
        let generator = set
            .types
            .generator(caller, &CredentialType::certificate())?;
        let generator = generator.as_ref();
        let checked = set.check(generator, fields.value, None).await?;
        let (permit, newest) =
            permit_to_write(&set.authorization, &set.store, caller, id, newest).await?;
        let name = newest
            .into_iter()
            .next()
            .ok_or(UseCaseError::NotFound)?
            .name;
        let ca_permit = set.permit_ca(caller, fields.ca_name.as_ref()).await?;
        for _ in 0..WRITE_ATTEMPTS_MAX {
            let mut draft = set
                .draft(&name, &checked, ca_permit.as_ref(), generator)
                .await?;
            draft.attributes.is_transitional = new.is_transitional;
            draft.attributes.is_generated = None;
            let permits = (&permit, ca_permit.as_ref());
            let appending = self
                .children
                .append_to_certificate(caller, permits, draft, id);
            if let Some(version) = appending.await? {
                warn_of_short_key(&name, checked.rsa_bits);
                return Ok(version);
            }
        }
        Err(UseCaseError::Contended)
    }

    /// Deletes one version of a certificate and returns it.
    ///
    /// # Errors
    /// [`UseCaseError::VersionNotFound`] if the certificate has no such version; [`UseCaseError::OnlyVersion`] if it has no other version;
    /// or if the version can't be decrypted. A version that can't be decrypted is not deleted.
    pub async fn delete_version(
        &self,
        caller: &Caller,
        certificate_id: Uuid,
        version_id: Uuid,
    ) -> Result<CredentialVersion, UseCaseError> {
        let (authorization, store) = (&self.set.authorization, &self.set.store);
        let (id, delete) = (certificate_id, Operation::Delete);
        let permit = permit_certificate(authorization, store, caller, delete, id).await?;
        let permit = permit.with_decryption();
        let version = store.repository.version_by_id(version_id).await?;
        let version = version.filter(|version| version.credential_id == id);
        let version = store
            .open(&permit, version.ok_or(UseCaseError::VersionNotFound)?)
            .await?;
        permit.record_version(id, version_id);
        let change = VersionChange::Delete(version_id);
        self.change(caller, &permit, id, change, &[]).await?;
        Ok(version)
    }

    /// Moves the transitional flag of a certificate to a version, or clears it, if the versions in `unchanged` are unchanged.
    /// Returns the active and the transitional version, if there are any.
    ///
    /// # Errors
    /// [`UseCaseError::Contended`] if one of the versions has changed;
    /// [`UseCaseError::NotFound`]; [`UseCaseError::TransitionalVersionRefused`] if the certificate has no such version. None of
    /// these errors changes a version.
    pub async fn move_transitional_version(
        &self,
        caller: &Caller,
        certificate_id: Uuid,
        to: TransitionalVersion,
        unchanged: &[ReadVersions],
    ) -> Result<Vec<CredentialVersion>, UseCaseError> {
        let (authorization, store) = (&self.set.authorization, &self.set.store);
        let (id, newest) = (certificate_id, VersionSelection::Newest(1));
        let (permit, _) = permit_to_write(authorization, store, caller, id, newest).await?;
        let change = VersionChange::Move(to);
        let moved = self.change(caller, &permit, id, change, unchanged).await?;
        let mut versions = Vec::with_capacity(moved.len());
        for version in moved {
            let version = store.open(&permit, version).await?;
            permit.record_version(version.credential_id, version.id);
            versions.push(version);
        }
        Ok(versions)
    }

    /// Changes a version if the versions in `unchanged` are unchanged. Returns the active and the transitional version, if there are any.
    async fn change(
        &self,
        caller: &Caller,
        permit: &Permit<'_>,
        certificate_id: Uuid,
        change: VersionChange,
        unchanged: &[ReadVersions],
    ) -> Result<Vec<StoredVersion>, UseCaseError> {
        let repository = &self.set.store.repository;
        let step = RotationStep::Change(change);
        let mut slot = self.children.slots.of(caller.actor());
        for _ in 0..WRITE_ATTEMPTS_MAX {
            let building = self
                .children
                .of_step(permit, certificate_id, step, &mut slot);
            let (mut additions, added) = building.await?;
            additions.unchanged.extend_from_slice(unchanged);
            self.set.authorization.confirm(caller, [permit]).await?;
            let changing = repository.change_version(certificate_id, change, additions);
            return Err(match (changing.await?, change) {
                (VersionChanged::Outdated, _) => continue,
                (VersionChanged::Written(current), _) => {
                    added.iter().for_each(ChildVersion::record);
                    return Ok(current);
                }
                (VersionChanged::IsOnly, _) => UseCaseError::OnlyVersion,
                (_, VersionChange::Delete(_)) => UseCaseError::VersionNotFound,
                (VersionChanged::CredentialAbsent, _) => UseCaseError::NotFound,
                (_, VersionChange::Move(TransitionalVersion::Latest)) => {
                    UseCaseError::TransitionalVersionRefused(
                        "none of its versions contains a certificate",
                    )
                }
                (_, VersionChange::Move(_)) => UseCaseError::TransitionalVersionRefused(
                    "version must be the id of a version of this certificate",
                ),
            });
        }
        Err(UseCaseError::Contended)
    }
}
