//! The versions that are added to certificates during the rotation of their CA, and the limits on changes to many credentials,
//! which also apply to bulk regenerations.
//!
//! During the rotation, clients must trust both certificates of the CA. With `concatenates_authorities`, each step therefore adds a
//! version to every certificate that the CA signed. It has the same certificate and key, and in `ca`, the CA's other certificate
//! follows the issuing certificate. The step and these versions are written in one transaction. A certificate whose latest version is
//! transitional gets none: the added version would be newer, so the certificate's own rotation would end with its old key.

use std::{iter, ops::ControlFlow, sync::Arc};

use parking_lot::Mutex;
use uuid::Uuid;

use crate::{
    UseCaseError,
    authorization::{Authorization, Caller, Permit},
    credential::{
        CredentialName, CredentialVersion, ListedCertificate, ListedVersion, LookupName,
        StoredVersion, VersionAttributes, VersionStore,
        version::Content,
        version_store::{Draft, Pace, StoredCertificate, WRITE_ATTEMPTS_MAX},
    },
    permission::{Actor, Operation},
    ports::{
        Additions, AllAppended, AppendCondition, Certificates, CredentialRepository, NewVersion,
        ReadSigned, ReadVersions, SignedTypes, TransitionalVersion, VersionChange,
        VersionSelection,
    },
};

/// A change of a CA's versions.
#[derive(Clone, Copy)]
pub(super) enum RotationStep<'a> {
    /// A version is added.
    Add(&'a Draft),
    /// A version is changed.
    Change(VersionChange),
}

/// A version to add to a certificate that a CA signed.
pub(super) struct ChildVersion<'a> {
    permit: Permit<'a>,
    credential_id: Uuid,
    id: Uuid,
}

impl ChildVersion<'_> {
    /// Records the version in the trail, once it is written.
    pub(super) fn record(&self) {
        self.permit.record_version(self.credential_id, self.id);
    }
}

/// Adds versions to the certificates that a CA signed.
#[derive(Clone)]
pub(super) struct ChildVersions {
    pub(super) authorization: Authorization,
    pub(super) store: VersionStore,
    pub(super) certificates: Arc<dyn Certificates>,
    pub(super) slots: BulkSlots,
}

impl ChildVersions {
    /// Adds a version to the certificate with this id. If it is transitional, also adds versions to the certificates that
    /// this CA signed. Returns `None` if the data that the draft depends on has changed. The permits are for the certificate and for
    /// its CA, if it has one; they are confirmed just before the versions are written.
    pub(super) async fn append_to_certificate(
        &self,
        caller: &Caller,
        (permit, ca_permit): (&Permit<'_>, Option<&Permit<'_>>),
        draft: Draft,
        certificate_id: Uuid,
    ) -> Result<Option<CredentialVersion>, UseCaseError> {
        let confirm = || {
            let permits = iter::once(permit).chain(ca_permit);
            self.authorization.confirm(caller, permits)
        };
        let condition = AppendCondition::CredentialIs(certificate_id);
        if !self.adds_child_versions(RotationStep::Add(&draft)) {
            confirm().await?;
            let appended = self.store.append(permit, draft, condition).await?;
            return Ok(appended.ok());
        }
        let version = self.store.seal(permit, &draft).await?;
        let mut slot = self.slots.of(caller.actor());
        for _ in 0..WRITE_ATTEMPTS_MAX {
            let step = RotationStep::Add(&draft);
            let (mut additions, children) = self
                .of_step(permit, certificate_id, step, &mut slot)
                .await?;
            additions.versions.insert(0, (version.clone(), condition));
            additions.unchanged.extend(draft.unchanged.iter().cloned());
            confirm().await?;
            let appended = self.store.repository.append_all(additions).await?;
            if let AllAppended::Written(written) = appended {
                children.iter().for_each(ChildVersion::record);
                let stored = written.into_iter().next();
                return Ok(stored.map(|stored| {
                    permit.record_version(stored.credential_id, stored.id);
                    CredentialVersion::new(stored, draft.content)
                }));
            }
            if !self.store.are_unchanged(&draft.unchanged).await? {
                return Ok(None);
            }
        }
        Err(UseCaseError::Contended)
    }

    /// Returns the versions to add with a step, the data that they depend on, and the record of each. All are empty if the settings
    /// don't require such versions. Takes the slot if the CA has more than [`SMALL_STEP_VERSIONS_MAX`] versions, or if the certificates
    /// that it signed exceed [`SMALL_STEP_BYTES_MAX`].
    pub(super) async fn of_step<'a>(
        &self,
        permit: &Permit<'a>,
        certificate_id: Uuid,
        step: RotationStep<'_>,
        slot: &mut BulkSlot,
    ) -> Result<(Additions, Vec<ChildVersion<'a>>), UseCaseError> {
        let (mut additions, mut added) = (Additions::default(), Vec::new());
        if !self.adds_child_versions(step) {
            return Ok((additions, added));
        }
        // Without the values, because only two of them are needed.
        let repository = &self.store.repository;
        let name = repository.name_of_certificate(certificate_id).await?;
        let name = name.ok_or(UseCaseError::NotFound)?;
        let versions = self.versions_of(&name, certificate_id, slot).await?;
        additions.unchanged.push(ReadVersions {
            name: name.lookup(),
            selection: VersionSelection::ALL,
            versions: versions
                .iter()
                .map(|version| (version.id, version.is_transitional))
                .collect(),
        });
        let Some(after) = self.after(permit, &versions, step).await? else {
            return Ok((additions, added));
        };
        let mut pace = Pace::default();
        for child in self
            .children_of(&name.lookup(), &mut additions, slot)
            .await?
        {
            pace.step().await;
            let condition = AppendCondition::NewestIs(Some(child.id));
            if !gets_version(&child, &name) {
                continue;
            }
            // The caller needs no permission on the child: only its `ca` changes, which every step of the CA's rotation requires.
            let permit = permit.extended_to(Operation::Write, &child.name.lookup());
            let credential_id = child.credential_id;
            let version = self.child_version(&permit, child, &after).await?;
            let id = version.id;
            additions.versions.push((version, condition));
            added.push(ChildVersion {
                permit,
                credential_id,
                id,
            });
        }
        Ok((additions, added))
    }

    /// Returns the versions of a CA without their values, latest version first. Takes the slot if there are more than
    /// [`SMALL_STEP_VERSIONS_MAX`].
    async fn versions_of(
        &self,
        name: &CredentialName,
        certificate_id: Uuid,
        slot: &mut BulkSlot,
    ) -> Result<Vec<ListedVersion>, UseCaseError> {
        let (actor, types) = (slot.actor().clone(), SignedTypes::Certificates);
        let (mut versions, mut refused) = (Vec::new(), None);
        let mut receive = |certificate: ListedCertificate| {
            if certificate.id == certificate_id {
                versions.extend(certificate.versions);
            }
            if versions.len() > SMALL_STEP_VERSIONS_MAX
                && let Err(error) = slot.take()
            {
                refused = Some(error);
                return ControlFlow::Break(());
            }
            ControlFlow::Continue(())
        };
        let repository = &self.store.repository;
        repository
            .certificate(&actor, &name.lookup(), types, &mut receive)
            .await?;
        match refused {
            Some(refused) => Err(refused),
            None if versions.is_empty() => Err(UseCaseError::NotFound),
            None => Ok(versions),
        }
    }

    fn adds_child_versions(&self, step: RotationStep<'_>) -> bool {
        let may_add = match step {
            RotationStep::Add(draft) => draft.attributes.is_transitional,
            RotationStep::Change(_) => true,
        };
        may_add && self.store.concatenates_authorities
    }

    /// Returns the CA's certificates after the step, or `None` if the step does not affect the certificates that the CA signed.
    async fn after(
        &self,
        permit: &Permit<'_>,
        versions: &[ListedVersion],
        step: RotationStep<'_>,
    ) -> Result<Option<AuthorityCertificates>, UseCaseError> {
        let flagged = versions.iter().find(|version| version.is_transitional);
        let flagged = flagged.map(|version| version.id);
        let transitional_id = match step {
            RotationStep::Add(_) if flagged.is_some() => {
                return Err(UseCaseError::TransitionalExists);
            }
            RotationStep::Change(VersionChange::Delete(id)) if flagged != Some(id) => {
                return Ok(None);
            }
            RotationStep::Change(VersionChange::Move(TransitionalVersion::Id(id))) => Some(id),
            RotationStep::Change(VersionChange::Move(TransitionalVersion::Latest)) => versions
                .iter()
                .find(|version| version.facts.is_some())
                .map(|version| version.id),
            RotationStep::Add(_) | RotationStep::Change(_) => None,
        };
        let mut transitional = match step {
            RotationStep::Add(draft) => StoredCertificate::parse(&draft.content.value)?.certificate,
            RotationStep::Change(_) => None,
        };
        let mut active = None;
        for version in versions {
            let is_deleted =
                matches!(step, RotationStep::Change(VersionChange::Delete(id)) if id == version.id);
            if transitional_id == Some(version.id) {
                transitional = self.certificate_by_id(permit, version.id).await?;
            } else if active.is_none() && !is_deleted {
                active = Some(self.certificate_by_id(permit, version.id).await?);
            }
        }
        let [active, transitional] = [active.flatten(), transitional]
            .map(|pem| pem.map(|pem| self.certificates.without_keys(pem)));
        let der = |pem: &String| self.certificates.first_certificate(pem);
        let active_der = active.as_ref().and_then(der);
        Ok(Some(AuthorityCertificates {
            transitional: transitional.filter(|pem| der(pem) != active_der),
            active_der,
            active,
        }))
    }

    /// Returns the certificate of a version (PEM), or `None` if the version was deleted concurrently. The step then fails.
    async fn certificate_by_id(
        &self,
        permit: &Permit<'_>,
        id: Uuid,
    ) -> Result<Option<String>, UseCaseError> {
        match self.store.repository.version_by_id(id).await? {
            Some(version) => Ok(self
                .store
                .certificate_of(permit, version)
                .await?
                .certificate),
            None => Ok(None),
        }
    }

    /// Returns the latest version of every certificate that a CA has ever signed, except itself.
    async fn children_of(
        &self,
        authority: &LookupName,
        additions: &mut Additions,
        slot: &mut BulkSlot,
    ) -> Result<Vec<StoredVersion>, UseCaseError> {
        let signers = vec![authority.clone()];
        // In values of other types, `ca` is not necessarily the CA certificate.
        let types = SignedTypes::Certificates;
        // The count allows for one certificate past the limit, and for the CA itself.
        let count_max = BULK_CERTIFICATES_MAX + 2;
        let repository = self.store.repository.as_ref();
        let names = repository
            .names_signed_by(slot.actor(), &signers, types, count_max)
            .await?;
        let size = check_size(
            repository,
            slot.actor(),
            names.iter().map(|signed| signed.name.lookup()),
        );
        if size.await? > SMALL_STEP_BYTES_MAX {
            slot.take()?;
        }
        let signed = repository.newest_signed_by(&signers, types, count_max);
        let mut children = signed.await?;
        let read = ReadSigned::new(signers, types, &children);
        additions.signed.push(read);
        children.retain(|child| !authority.is(&child.name));
        if children.len() > BULK_CERTIFICATES_MAX as usize {
            return Err(UseCaseError::TooManySigned);
        }
        Ok(children)
    }

    async fn child_version(
        &self,
        permit: &Permit<'_>,
        newest: StoredVersion,
        after: &AuthorityCertificates,
    ) -> Result<NewVersion, UseCaseError> {
        let version = self.store.open(permit, newest).await?;
        let ca = StoredCertificate::parse(&version.content.value)?.ca;
        let trusted_ca = ca.and_then(|ca| self.additional_trusted_ca(&ca, after));
        let child = Draft {
            name: version.name,
            credential_type: version.credential_type,
            attributes: VersionAttributes {
                is_transitional: false,
                ..version.attributes
            },
            content: Content {
                metadata: None,
                trusted_ca,
                ..version.content
            },
            unchanged: Vec::new(),
        };
        self.store.seal(permit, &child).await
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

/// Returns whether a child with this latest version gets another version in a step of its CA's rotation. A child in rotation
/// gets none: the new version would be active, and end the overlap of the child's own versions.
fn gets_version(newest: &StoredVersion, authority: &CredentialName) -> bool {
    let signer = newest.attributes.signed_by.as_ref();
    !newest.attributes.is_transitional
        && signer.is_some_and(|signer| signer.lookup() == authority.lookup())
}

/// The certificates of a CA's active and transitional versions, in PEM.
struct AuthorityCertificates {
    active: Option<String>,
    /// The first certificate of `active`, parsed once for all certificates that the CA signed.
    active_der: Option<Vec<u8>>,
    /// `None` if it is the active certificate.
    transitional: Option<String>,
}

/// Returns the total size of the latest versions of credentials.
///
/// # Errors
/// If it exceeds [`BULK_BYTES_MAX`].
pub(super) async fn check_size(
    repository: &dyn CredentialRepository,
    actor: &Actor,
    names: impl Iterator<Item = LookupName>,
) -> Result<usize, UseCaseError> {
    let names: Vec<_> = names.collect();
    let sizes = repository.newest_sizes_by_names(actor, &names).await?;
    let bytes: usize = sizes.iter().map(|newest| newest.ciphertext_bytes).sum();
    if bytes > BULK_BYTES_MAX {
        return Err(UseCaseError::BulkTooLarge);
    }
    Ok(bytes)
}

/// The maximum number of credentials in one bulk regeneration, and of certificates that get a new version in one step
/// of their CA's rotation.
pub const BULK_CERTIFICATES_MAX: u32 = 10_000;

/// The maximum number of versions of a CA for a step of its rotation without a slot.
const SMALL_STEP_VERSIONS_MAX: usize = 1_000;

/// The maximum total size of the latest versions of the certificates that a CA signed, for a step of its rotation without a slot.
const SMALL_STEP_BYTES_MAX: usize = 256 * 1024;

/// The maximum total size of the latest versions of the credentials in one bulk regeneration or one step of a CA's rotation,
/// encrypted. All of them and their new versions are in memory at once.
pub const BULK_BYTES_MAX: usize = 256 * 1024 * 1024;

/// The maximum number of concurrent requests that change many credentials, each of a different actor: bulk regenerations,
/// including dry runs, and steps of a CA's rotation. Each keeps all new versions in memory until it writes them.
pub(super) const BULK_CHANGES_MAX: usize = 2;

/// The slots of requests that change many credentials: the actors that hold one.
#[derive(Clone, Default)]
pub(super) struct BulkSlots(Arc<Mutex<Vec<Actor>>>);

/// The slot of one request. Once it is taken, it is held until it is dropped.
pub(super) struct BulkSlot {
    slots: BulkSlots,
    actor: Actor,
    is_held: bool,
}

impl BulkSlots {
    /// Returns a slot for a request of this actor, without taking it.
    pub(super) fn of(&self, actor: &Actor) -> BulkSlot {
        BulkSlot {
            slots: self.clone(),
            actor: actor.clone(),
            is_held: false,
        }
    }
}

impl BulkSlot {
    /// Returns the actor of the request.
    pub(super) fn actor(&self) -> &Actor {
        &self.actor
    }

    /// Takes the slot, unless it is already held.
    ///
    /// # Errors
    /// If another request of this actor holds a slot, or all slots are held.
    pub(super) fn take(&mut self) -> Result<(), UseCaseError> {
        if self.is_held {
            return Ok(());
        }
        let mut holders = self.slots.0.lock();
        if holders.contains(&self.actor) {
            return Err(UseCaseError::BulkChangeOfActor);
        }
        if holders.len() >= BULK_CHANGES_MAX {
            return Err(UseCaseError::TooManyBulkChanges);
        }
        holders.push(self.actor.clone());
        self.is_held = true;
        Ok(())
    }
}

impl Drop for BulkSlot {
    fn drop(&mut self) {
        if self.is_held {
            self.slots.0.lock().retain(|holder| *holder != self.actor);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_actor_may_hold_one_of_a_limited_number_of_slots() {
        let slots = BulkSlots::default();
        let of = |actor: usize| slots.of(&Actor::client(&actor.to_string()).unwrap());
        let mut held: Vec<_> = (0..BULK_CHANGES_MAX).map(of).collect();
        for slot in &mut held {
            assert!(slot.take().is_ok());
            assert!(slot.take().is_ok());
        }
        let refused = of(0).take();
        assert!(matches!(refused, Err(UseCaseError::BulkChangeOfActor)));
        let refused = of(BULK_CHANGES_MAX).take();
        assert!(matches!(refused, Err(UseCaseError::TooManyBulkChanges)));
        held.remove(0);
        let mut again = of(0);
        assert!(again.take().is_ok());
        assert!(of(BULK_CHANGES_MAX).take().is_err());
    }
}
