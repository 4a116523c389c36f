//! Managing single versions of a certificate: adding and deleting versions, and moving the transitional flag. These steps rotate
//! a CA while the certificates that it signed stay in use.
//!
//! While a CA is being replaced, clients must trust both of its certificates. With `concatenates_authorities`, each step
//! therefore adds a version to every certificate that the CA signed. It has the same certificate and key, and in `ca`, the CA's
//! other certificate follows the issuing certificate. The step and these versions are written in one transaction.

use uuid::Uuid;

use crate::{
    Failure, Secret,
    authorization::{Caller, Permit},
    credential::{
        BULK_CERTIFICATES_MAX, CredentialName, CredentialType, CredentialVersion, Credentials,
        LookupName, StoredVersion, VersionAttributes,
        bulk_regenerate::too_many_signed,
        certificates::{ListedCertificate, ListedVersion},
        content::{Content, StoredCertificate},
        set::{Fields, warn_of_short_key},
        version_store::{Draft, OpenVersion, WRITE_ATTEMPTS_MAX},
    },
    pace::Pace,
    permission::Operation,
    ports::{
        Additions, AllAppended, AppendCondition, NewVersion, ReadSigned, ReadVersions, SignedTypes,
        TransitionalMoved, TransitionalVersion, VersionDeleted, VersionSelection,
    },
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

/// A change of a CA's versions.
#[derive(Clone, Copy)]
pub(super) enum RotationStep<'a> {
    /// A version is added.
    Add(&'a Draft),
    /// A version is deleted.
    Delete(Uuid),
    /// The transitional flag is moved.
    Move(TransitionalVersion),
}

impl Credentials {
    /// Adds a version with a value from the caller. Whether a server generated the value is unknown, so `is_generated` is
    /// `None`.
    ///
    /// # Errors
    /// [`Failure::NotFound`]; [`Failure::TransitionalExists`]; or if the value breaks a rule for certificates, or has no
    /// `certificate`.
    pub async fn add_certificate_version(
        &self,
        caller: &Caller,
        new: NewCertificateVersion,
    ) -> Result<CredentialVersion, Failure> {
        let fields = Fields::parse(&new.value)?;
        if !fields.have_certificate() {
            return Err(Failure::ValueRefused("certificate is required".to_owned()));
        }
        let generator = self.generator(caller, &CredentialType::certificate())?;
        let checked = self.check(generator.as_ref(), fields, None).await?;
        let newest = VersionSelection::Newest(1);
        let (permit, newest) = self
            .permitted_certificate_versions(caller, Operation::Write, new.certificate_id, newest)
            .await?;
        let newest = newest.into_iter().next().ok_or(Failure::NotFound)?;
        let ca_permit = self.permit_ca_name(caller, &checked.fields).await?;
        for _ in 0..WRITE_ATTEMPTS_MAX {
            let (name, credential_type) = (newest.name.clone(), newest.credential_type.clone());
            let mut draft = self
                .draft_of(
                    name,
                    credential_type,
                    checked.clone(),
                    ca_permit.as_ref(),
                    generator.as_ref(),
                )
                .await?;
            draft.attributes.is_transitional = new.is_transitional;
            draft.attributes.is_generated = None;
            let appended = self
                .append_to_certificate(&permit, draft, new.certificate_id)
                .await?;
            if let Some(version) = appended {
                warn_of_short_key(&newest.name, checked.rsa_bits);
                return Ok(version.into_version(&permit));
            }
        }
        Err(Failure::Contended)
    }

    /// Deletes one version of a certificate and returns it.
    ///
    /// # Errors
    /// [`Failure::NotFound`] if the certificate has no such version; [`Failure::OnlyVersion`] if it has no other version; or if
    /// the version can't be decrypted. A version that can't be decrypted is not deleted.
    pub async fn delete_certificate_version(
        &self,
        caller: &Caller,
        certificate_id: Uuid,
        version_id: Uuid,
    ) -> Result<CredentialVersion, Failure> {
        let permit = self
            .permit_certificate(caller, Operation::Delete, certificate_id)
            .await?
            .with_decryption();
        let version = self
            .store
            .repository
            .version_by_id(version_id)
            .await?
            .filter(|version| version.credential_id == certificate_id)
            .ok_or(Failure::NotFound)?;
        let version = self.store.open(&permit, version).await?;
        let version = version.into_version(&permit);
        for _ in 0..WRITE_ATTEMPTS_MAX {
            let additions = self
                .child_versions(&permit, certificate_id, RotationStep::Delete(version_id))
                .await?;
            let deleted = self
                .store
                .repository
                .delete_version(certificate_id, version_id, additions)
                .await?;
            match deleted {
                VersionDeleted::Absent => return Err(Failure::NotFound),
                VersionDeleted::Changed => {}
                VersionDeleted::Deleted => {
                    permit.record_disclosure(certificate_id, version_id);
                    return Ok(version);
                }
                VersionDeleted::IsOnly => return Err(Failure::OnlyVersion),
            }
        }
        Err(Failure::Contended)
    }

    /// Moves the transitional flag of a certificate to a version, or clears it. Returns the active and the transitional
    /// version, if there are any.
    ///
    /// # Errors
    /// [`Failure::NotFound`]; [`Failure::TransitionalVersionRefused`] if the certificate has no such version. In both
    /// cases, no version is changed.
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
            let version = self.store.open(&permit, version).await?;
            permit.record_disclosure(version.stored.credential_id, version.stored.id);
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
        for _ in 0..WRITE_ATTEMPTS_MAX {
            let additions = self
                .child_versions(permit, certificate_id, RotationStep::Move(to))
                .await?;
            let moved = self
                .store
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

    /// Adds a version to the certificate with this id. If it is transitional, also adds versions to the certificates that
    /// this CA signed. Returns `None` if the data that the draft depends on has changed.
    pub(super) async fn append_to_certificate(
        &self,
        permit: &Permit<'_>,
        draft: Draft,
        certificate_id: Uuid,
    ) -> Result<Option<OpenVersion>, Failure> {
        let condition = AppendCondition::CredentialIs(certificate_id);
        if !self.adds_child_versions(RotationStep::Add(&draft)) {
            return self.store.append(permit, draft, condition).await;
        }
        let version = self.store.seal(permit, &draft).await?;
        for _ in 0..WRITE_ATTEMPTS_MAX {
            let mut additions = self
                .child_versions(permit, certificate_id, RotationStep::Add(&draft))
                .await?;
            additions.versions.insert(0, (version.clone(), condition));
            additions.unchanged.extend(draft.unchanged.iter().cloned());
            if let AllAppended::Written(written) =
                self.store.repository.append_all(additions).await?
            {
                let content = draft.content;
                let stored = written.into_iter().next();
                return Ok(stored.map(|stored| OpenVersion { stored, content }));
            }
            if !self.store.are_unchanged(&draft.unchanged).await? {
                return Ok(None);
            }
        }
        Err(Failure::Contended)
    }

    /// Returns the versions to add with a step, and the data that they depend on. Both are empty if the settings don't
    /// require such versions.
    pub(super) async fn child_versions(
        &self,
        permit: &Permit<'_>,
        certificate_id: Uuid,
        step: RotationStep<'_>,
    ) -> Result<Additions, Failure> {
        if !self.adds_child_versions(step) {
            return Ok(Additions::default());
        }
        let authority = self.listed(certificate_id).await?;
        let (name, versions) = (authority.name, authority.versions);
        let mut additions = Additions::default();
        additions.unchanged.push(ReadVersions {
            name: name.lookup(),
            selection: VersionSelection::All,
            ids: versions.iter().map(|version| version.id).collect(),
        });
        let Some(after) = self.after(permit, &versions, step).await? else {
            return Ok(additions);
        };
        let mut pace = Pace::default();
        for child in self.children_of(&name.lookup(), &mut additions).await? {
            pace.step().await;
            let condition = AppendCondition::NewestIs(Some(child.id));
            let Some(active) = self.active_child(child, &name, &mut additions).await? else {
                continue;
            };
            let version = self.child_version(permit, active, &after).await?;
            additions.versions.push((version, condition));
        }
        Ok(additions)
    }

    /// Returns all versions of the certificate with this id, without their values, because only two values are needed.
    async fn listed(&self, certificate_id: Uuid) -> Result<ListedCertificate, Failure> {
        let name = self
            .store
            .repository
            .name_of_certificate(certificate_id)
            .await?;
        let name = name.ok_or(Failure::NotFound)?;
        let listed = self
            .store
            .repository
            .certificate(&name.lookup(), SignedTypes::Certificates)
            .await?;
        listed
            .filter(|certificate| certificate.id == certificate_id)
            .ok_or(Failure::NotFound)
    }

    fn adds_child_versions(&self, step: RotationStep<'_>) -> bool {
        let may_add = match step {
            RotationStep::Add(draft) => draft.attributes.is_transitional,
            RotationStep::Delete(_) | RotationStep::Move(_) => true,
        };
        may_add && self.certificate_settings.concatenates_authorities
    }

    /// Returns the CA's certificates after the step, or `None` if the step does not affect the certificates that it signed.
    async fn after(
        &self,
        permit: &Permit<'_>,
        versions: &[ListedVersion],
        step: RotationStep<'_>,
    ) -> Result<Option<AuthorityCertificates>, Failure> {
        let flagged = versions.iter().find(|version| version.is_transitional);
        let flagged = flagged.map(|version| version.id);
        let transitional_id = match step {
            RotationStep::Add(_) if flagged.is_some() => return Err(Failure::TransitionalExists),
            RotationStep::Delete(id) if flagged != Some(id) => return Ok(None),
            RotationStep::Move(TransitionalVersion::Id(id)) => Some(id),
            RotationStep::Move(TransitionalVersion::Latest) => versions
                .iter()
                .find(|version| version.facts.is_some())
                .map(|version| version.id),
            RotationStep::Add(_)
            | RotationStep::Delete(_)
            | RotationStep::Move(TransitionalVersion::None) => None,
        };
        let mut transitional = match step {
            RotationStep::Add(draft) => StoredCertificate::parse(&draft.content.value)?.certificate,
            RotationStep::Delete(_) | RotationStep::Move(_) => None,
        };
        let mut active = None;
        for version in versions {
            let is_deleted = matches!(step, RotationStep::Delete(id) if id == version.id);
            if transitional_id == Some(version.id) {
                transitional = self.certificate_by_id(permit, version.id).await?;
            } else if active.is_none() && !is_deleted {
                active = Some(self.certificate_by_id(permit, version.id).await?);
            }
        }
        let active = active.flatten();
        Ok(Some(AuthorityCertificates {
            active_der: active
                .as_deref()
                .and_then(|active| self.certificates.first_certificate(active)),
            active,
            transitional,
        }))
    }

    /// Returns the certificate of a version, PEM, or `None` if the version was deleted concurrently. The step then fails.
    async fn certificate_by_id(
        &self,
        permit: &Permit<'_>,
        id: Uuid,
    ) -> Result<Option<String>, Failure> {
        match self.store.repository.version_by_id(id).await? {
            Some(version) => Ok(self
                .store
                .certificate_of(permit, version)
                .await?
                .certificate),
            None => Ok(None),
        }
    }

    /// Returns the newest version of every certificate that a CA has ever signed, except itself.
    async fn children_of(
        &self,
        authority: &LookupName,
        additions: &mut Additions,
    ) -> Result<Vec<StoredVersion>, Failure> {
        let signers = vec![authority.clone()];
        // In values of other types, `ca` is not necessarily the CA certificate.
        let types = SignedTypes::Certificates;
        // The count allows for one certificate past the limit, and for the CA itself.
        let mut children = self
            .store
            .repository
            .newest_signed_by(&signers, types, BULK_CERTIFICATES_MAX + 2)
            .await?;
        additions
            .signed
            .push(ReadSigned::new(signers, types, &children));
        children.retain(|child| child.name.lookup() != *authority);
        if children.len() > BULK_CERTIFICATES_MAX as usize {
            return Err(too_many_signed());
        }
        Ok(children)
    }

    /// Returns the active version of a child if the CA signed it.
    async fn active_child(
        &self,
        newest: StoredVersion,
        authority: &CredentialName,
        additions: &mut Additions,
    ) -> Result<Option<StoredVersion>, Failure> {
        let active = if newest.attributes.is_transitional {
            let name = newest.name.lookup();
            let current = self.store.active_versions(&name).await?;
            additions.unchanged.push(current.as_read(&name));
            current.active
        } else {
            Some(newest)
        };
        Ok(active.filter(|version| {
            let signer = version
                .attributes
                .signed_by
                .as_ref()
                .map(CredentialName::lookup);
            version.attributes.certificate.is_some() && signer == Some(authority.lookup())
        }))
    }

    async fn child_version(
        &self,
        permit: &Permit<'_>,
        active: StoredVersion,
        after: &AuthorityCertificates,
    ) -> Result<NewVersion, Failure> {
        // The caller needs no permission on the child: only its `ca` changes, which every step of the CA's rotation requires.
        let permit = permit.extended_to(Operation::Write, &active.name.lookup());
        let OpenVersion { stored, content } = self.store.open(&permit, active).await?;
        permit.record_resource(stored.credential_id);
        let ca = StoredCertificate::parse(&content.value)?.ca;
        let trusted_ca = ca.and_then(|ca| self.additional_trusted_ca(&ca, after));
        let child = Draft {
            name: stored.name,
            credential_type: stored.credential_type,
            attributes: VersionAttributes {
                is_transitional: false,
                ..stored.attributes
            },
            content: Content {
                metadata: None,
                trusted_ca,
                ..content
            },
            unchanged: Vec::new(),
        };
        self.store.seal(&permit, &child).await
    }

    /// Returns the CA's certificate that is not in `ca`, or `None` if the CA has only one certificate.
    fn additional_trusted_ca(&self, ca: &str, after: &AuthorityCertificates) -> Option<String> {
        let (active, transitional) = (after.active.as_ref()?, after.transitional.as_ref()?);
        let ca = self.certificates.first_certificate(ca);
        let trusted = if ca.is_some() && ca == after.active_der {
            transitional
        } else {
            active
        };
        Some(trusted.clone())
    }
}

/// The certificates of a CA's active and transitional versions, PEM.
struct AuthorityCertificates {
    active: Option<String>,
    /// The first certificate of `active`, parsed once for all certificates that the CA signed.
    active_der: Option<Vec<u8>>,
    transitional: Option<String>,
}
