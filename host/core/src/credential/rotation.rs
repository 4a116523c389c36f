//! Rotation of a CA without downtime, in four steps.
//!
//! No state is stored between steps. The stage follows from the CA's versions, the transitional flag, and the signers of the
//! certificates below. So a rotation that was started here can be continued with any client of the API, and vice versa. The
//! client's library determines the same stages from responses of the API (`client/src/api/rotation.rs`).

use std::{
    collections::{HashMap, HashSet},
    iter,
};

use uuid::Uuid;

use crate::{
    UseCaseError,
    authorization::{Caller, EffectivePermissions},
    credential::{
        BULK_CERTIFICATES_MAX, BulkCriterion, BulkOptions, BulkRegenerate, CertificateCredentials,
        CredentialName, Credentials, ListedVersion, LookupName, PathPrefix, RegenerateCertificate,
        StoredVersion, TransitionalParent,
    },
    permission::Operation,
    ports::{ReadVersions, SignedTypes, TransitionalVersion, VersionSelection},
};

/// The stage of a rotation, which determines the next step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RotationStage {
    /// No rotation is in progress. Step 1 adds a transitional version, so that clients can trust it before it signs.
    NotBegun,
    /// The latest version is transitional, so an older version signs. Step 2 moves the transitional flag to the old version,
    /// so that the new one signs.
    Introduced,
    /// A version older than the signing version is transitional, and it signed certificates in use. Step 3 regenerates
    /// everything that the CA signed.
    Switched,
    /// The same, but the transitional version signed no certificate in use. Step 4 clears the flag.
    Renewed,
}

impl RotationStage {
    /// All stages in order.
    pub const ALL: [Self; 4] = [
        Self::NotBegun,
        Self::Introduced,
        Self::Switched,
        Self::Renewed,
    ];

    /// Returns the number of the next step, from 1.
    pub fn step(self) -> usize {
        self as usize + 1
    }

    /// Determines the stage from the versions of a CA, newest first, without the certificates below: never
    /// [`RotationStage::Renewed`].
    fn before_renewal(versions: &[ListedVersion]) -> Self {
        let position = |is_transitional| {
            let mut flags = versions.iter().map(|version| version.is_transitional);
            flags.position(|flag| flag == is_transitional)
        };
        match position(true) {
            None => Self::NotBegun,
            transitional if transitional < position(false) => Self::Introduced,
            Some(_) => Self::Switched,
        }
    }
}

/// The versions of a CA that determine the stage of its rotation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObservedVersions {
    /// The version that signs.
    pub signing: Uuid,
    /// The transitional version.
    pub transitional: Option<Uuid>,
}

/// The state of a CA's rotation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rotation {
    /// The id of the CA's credential.
    pub certificate_id: Uuid,
    /// Its name, with the casing of its first version.
    pub name: CredentialName,
    /// The stage.
    pub stage: RotationStage,
    /// The versions from which the stage follows.
    pub versions: ObservedVersions,
    /// The credentials whose certificate in use was not signed by the signing version, directly or through another CA, in
    /// case-insensitive alphabetical order. Credentials below an outstanding CA are omitted, because they are regenerated
    /// together with it. Determined only while the old version is transitional; otherwise empty.
    pub outstanding: Vec<CredentialName>,
}

/// The reason why a rotation can't be observed or continued.
#[derive(Debug, thiserror::Error)]
pub enum RotationError {
    /// The state of the rotation differs from the state that the caller observed. Nothing was changed.
    #[error("another client has continued the rotation; nothing was changed")]
    Changed,
    /// The certificate is not a CA certificate.
    #[error("{0} is not a CA; regenerate it instead")]
    NoAuthority(CredentialName),
    /// The only version is transitional.
    #[error(
        "{0} has only a transitional version, which does not sign; clear its transitional flag first"
    )]
    NothingSigns(CredentialName),
    /// The caller may not read a credential below the CA.
    #[error(
        "you may not read {0}, which the CA signed; the step requires the operation read to check whether it was regenerated"
    )]
    Unreadable(CredentialName),
    /// A use case failed.
    #[error(transparent)]
    UseCase(#[from] UseCaseError),
}

impl Credentials {
    /// Takes the next step of a rotation, if the CA still has the observed stage and versions.
    ///
    /// The steps that change the transitional flag verify the versions in their transaction. If the rotation was continued after
    /// it was verified here, the other two steps do no harm: adding a second transitional version is refused, and
    /// regenerating everything again keeps the stage.
    ///
    /// # Errors
    /// [`RotationError::Changed`] if the state differs.
    pub async fn advance_rotation(
        &self,
        caller: &Caller,
        name: &LookupName,
        observed: (RotationStage, ObservedVersions),
    ) -> Result<(), RotationError> {
        let rotation = self.certificates.rotation(caller, name).await?;
        if (rotation.stage, rotation.versions) != observed {
            return Err(RotationError::Changed);
        }
        let to = match rotation.stage {
            RotationStage::NotBegun => {
                let regenerate = RegenerateCertificate {
                    certificate_id: rotation.certificate_id,
                    is_transitional: true,
                    transitional_parent: TransitionalParent::MayNotSign,
                    key_length: None,
                    duration: None,
                    metadata: None,
                };
                return match self.regenerate.certificate(caller, regenerate).await {
                    Ok(_) => Ok(()),
                    Err(UseCaseError::TransitionalExists) => Err(RotationError::Changed),
                    Err(failure) => Err(failure.into()),
                };
            }
            RotationStage::Switched => {
                let below = BulkRegenerate {
                    criterion: BulkCriterion::SignedBy(rotation.name.lookup()),
                    below: PathPrefix::new(""),
                };
                let options = BulkOptions::default();
                let regenerating = self.bulk_regenerate.credentials(caller, &below, options);
                regenerating.await?;
                return Ok(());
            }
            RotationStage::Introduced => TransitionalVersion::Id(rotation.versions.signing),
            RotationStage::Renewed => TransitionalVersion::None,
        };
        let ObservedVersions {
            signing,
            transitional,
        } = rotation.versions;
        let unchanged = [ReadVersions {
            name: rotation.name.lookup(),
            selection: VersionSelection::Current,
            versions: iter::once((signing, false))
                .chain(transitional.map(|id| (id, true)))
                .collect(),
        }];
        let id = rotation.certificate_id;
        let moving = self
            .rotation
            .move_transitional_version(caller, id, to, &unchanged);
        match moving.await {
            Ok(_) => Ok(()),
            Err(UseCaseError::Contended) => Err(RotationError::Changed),
            Err(failure) => Err(failure.into()),
        }
    }
}

impl CertificateCredentials {
    /// Determines the state of a CA's rotation.
    pub async fn rotation(
        &self,
        caller: &Caller,
        name: &LookupName,
    ) -> Result<Rotation, RotationError> {
        let listing = self.listed(caller, name, SignedTypes::Certificates);
        let certificate = listing.await?;
        let name = certificate.name.clone();
        let signing = certificate.active();
        let signing = signing.ok_or_else(|| RotationError::NothingSigns(name.clone()))?;
        let facts = signing.facts.as_ref();
        if !facts.is_some_and(|facts| facts.is_certificate_authority) {
            return Err(RotationError::NoAuthority(name));
        }
        let mut rotation = Rotation {
            certificate_id: certificate.id,
            stage: RotationStage::before_renewal(&certificate.versions),
            versions: ObservedVersions {
                signing: signing.id,
                transitional: certificate.transitional().map(|version| version.id),
            },
            outstanding: Vec::new(),
            name,
        };
        if rotation.stage == RotationStage::Switched {
            let signing = (rotation.name.clone(), signing.id);
            rotation.outstanding = self.outstanding(caller, signing).await?;
            if rotation.outstanding.is_empty() {
                rotation.stage = RotationStage::Renewed;
            }
        }
        Ok(rotation)
    }

    /// Returns the credentials below a CA whose active version was not signed by the active version of their own CA.
    async fn outstanding(
        &self,
        caller: &Caller,
        root: (CredentialName, Uuid),
    ) -> Result<Vec<CredentialName>, RotationError> {
        let mut walk = Walk {
            of: self,
            caller,
            permissions: EffectivePermissions::none(),
            seen: HashSet::from([root.0.folded()]),
            authorities: vec![root],
            certificates: HashMap::new(),
            outstanding: Vec::new(),
        };
        while !walk.authorities.is_empty() {
            let rest = walk.authorities.len().saturating_sub(READ_AT_ONCE);
            let authorities: HashMap<_, _> = walk
                .authorities
                .drain(rest..)
                .map(|authority| (authority.0.folded(), authority))
                .collect();
            let rows_max = BULK_CERTIFICATES_MAX + 2;
            let signers: Vec<_> = authorities
                .values()
                .map(|(name, _)| name.lookup())
                .collect();
            let names = self.store.repository.names_signed_by(
                caller.actor(),
                &signers,
                SignedTypes::All,
                rows_max,
            );
            let names = names.await.map_err(UseCaseError::from)?.into_iter();
            let names = names.map(|signed| signed.name);
            let names: Vec<_> = names
                .filter(|name| !walk.seen.contains(&name.folded()))
                .collect();
            if walk.seen.len() + names.len() > BULK_CERTIFICATES_MAX as usize + 1 {
                return Err(UseCaseError::TooManySigned.into());
            }
            for names in names.chunks(READ_AT_ONCE) {
                walk.check(&authorities, names).await?;
            }
        }
        let mut outstanding = walk.outstanding;
        outstanding.sort_by_cached_key(CredentialName::folded);
        Ok(outstanding)
    }
}

/// The search for outstanding credentials below a CA.
struct Walk<'a> {
    of: &'a CertificateCredentials,
    caller: &'a Caller,
    /// The permissions on the credentials that are being checked, and on their CAs. Others can grant the caller so many elsewhere
    /// that there is no memory for all.
    permissions: EffectivePermissions,
    /// The folded names of the rotated CA, and of the credentials that were checked as signed by a CA.
    seen: HashSet<String>,
    /// The certificates whose signed credentials have not been checked, each with its active version. An older version may have been a
    /// CA.
    authorities: Vec<(CredentialName, Uuid)>,
    /// The certificates of CA versions, in DER; `None` if a version does not exist, or its certificate is malformed.
    certificates: HashMap<Uuid, Option<Vec<u8>>>,
    outstanding: Vec<CredentialName>,
}

impl Walk<'_> {
    /// Checks some of the credentials that these CAs signed. The CAs are mapped by folded name.
    async fn check(
        &mut self,
        authorities: &HashMap<String, (CredentialName, Uuid)>,
        names: &[CredentialName],
    ) -> Result<(), RotationError> {
        let lookups: Vec<_> = names.iter().map(CredentialName::lookup).collect();
        let signers = authorities.values().map(|(name, _)| name.lookup());
        let covered: Vec<_> = lookups.iter().cloned().chain(signers).collect();
        let authorization = &self.of.authorization;
        self.permissions = authorization
            .permissions_covering_all(self.caller, &covered)
            .await?;
        let unreadable = |name: &&CredentialName| {
            let permissions = &self.permissions;
            !permissions.allow(Operation::Read, name.as_str())
        };
        if let Some(name) = names.iter().find(unreadable) {
            return Err(RotationError::Unreadable(name.clone()));
        }
        let store = &self.of.store;
        let newest = store
            .repository
            .newest_by_names(self.caller.actor(), &lookups)
            .await;
        for newest in newest.map_err(UseCaseError::from)? {
            let active = if newest.attributes.is_transitional {
                store.active_versions(&newest.name.lookup()).await?.active
            } else {
                Some(newest)
            };
            let Some(active) = active else { continue };
            // These CAs may have signed only other versions. The CA of the active version is then checked later.
            let signer = active.attributes.signed_by.as_ref();
            let authority = signer.and_then(|signer| authorities.get(&signer.folded()));
            let Some((authority, signing)) = authority else {
                continue;
            };
            self.seen.insert(active.name.folded());
            let (name, id) = (active.name.clone(), active.id);
            let may_sign = active.credential_type.is_certificate();
            if !self.is_signed_by(authority, *signing, active).await? {
                self.outstanding.push(name);
            } else if may_sign {
                self.authorities.push((name, id));
            }
        }
        Ok(())
    }

    /// Returns whether a version was signed by the signing version of its CA, or by another version with the same certificate.
    async fn is_signed_by(
        &mut self,
        authority: &CredentialName,
        signing: Uuid,
        version: StoredVersion,
    ) -> Result<bool, UseCaseError> {
        let issuer = version.attributes.issuer;
        let issuer = issuer.and_then(|issuer| issuer.version_id);
        if issuer == Some(signing) {
            return Ok(true);
        }
        let expected = self.certificate(authority, signing).await?;
        let mut found = None;
        if let Some(issuer) = issuer {
            found = self.certificate(authority, issuer).await?;
        }
        // Only the value contains the issuer's certificate if its version is unknown or deleted.
        if found.is_none() && version.credential_type.is_certificate() {
            let permit =
                self.permissions
                    .permit(self.caller, Operation::Read, &version.name.lookup())?;
            permit.record_version(version.credential_id, version.id);
            let stored = self.of.store.certificate_of(&permit, version).await?;
            found = stored
                .ca
                .and_then(|ca| self.of.certificates.first_certificate(&ca));
        }
        Ok(found.is_some() && found == expected)
    }

    /// Returns the certificate of a CA version, in DER.
    async fn certificate(
        &mut self,
        authority: &CredentialName,
        id: Uuid,
    ) -> Result<Option<Vec<u8>>, UseCaseError> {
        if let Some(known) = self.certificates.get(&id) {
            return Ok(known.clone());
        }
        let store = &self.of.store;
        let stored = store.repository.version_by_id(id).await?;
        let mut certificate = None;
        if let Some(stored) = stored.filter(|stored| stored.name == *authority) {
            let permit =
                self.permissions
                    .permit(self.caller, Operation::Read, &authority.lookup())?;
            permit.record_version(stored.credential_id, stored.id);
            let stored = store.certificate_of(&permit, stored).await?;
            let pem = stored.certificate.unwrap_or_default();
            certificate = self.of.certificates.first_certificate(&pem);
        }
        self.certificates.insert(id, certificate.clone());
        Ok(certificate)
    }
}

/// The number of credentials whose latest versions, or whose signed credentials, are read at once.
const READ_AT_ONCE: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stage_follows_from_the_order_of_versions_and_the_flag() {
        for (versions, stage) in [
            ("s", RotationStage::NotBegun),
            ("sss", RotationStage::NotBegun),
            ("ts", RotationStage::Introduced),
            ("tss", RotationStage::Introduced),
            ("st", RotationStage::Switched),
            // The CA was regenerated again after or before the flag moved.
            ("sst", RotationStage::Switched),
            ("sts", RotationStage::Switched),
        ] {
            let listed = versions.chars().map(|kind| ListedVersion {
                id: Uuid::nil(),
                is_transitional: kind == 't',
                is_generated: None,
                facts: None,
                signed_by: None,
            });
            let listed: Vec<_> = listed.collect();
            assert_eq!(RotationStage::before_renewal(&listed), stage, "{versions}");
        }
    }
}
