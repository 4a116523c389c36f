//! Looking up the signing CA and its other trusted certificate, and detecting that a CA has a new active certificate.

use crate::{
    Failure, Secret,
    authorization::{Caller, Permit},
    credential::{
        CredentialName, Credentials, IssuerVersion, LookupName, StoredVersion,
        content::StoredCertificate,
        version_store::{ActiveVersions, OpenVersion, VersionStore},
    },
    permission::Operation,
    ports::{CertificateError, NOT_AN_AUTHORITY, ReadVersions},
};

/// A CA that is ready to sign, with its private key decrypted.
pub(super) struct Authority {
    /// The CA's name, in the casing of its first writer.
    pub(super) name: CredentialName,
    /// The record of the signing version as an issuer.
    pub(super) issuer: Option<IssuerVersion>,
    /// The certificate of the signing version, PEM.
    pub(super) certificate: String,
    /// Its private key, PEM.
    pub(super) private_key: Secret,
    /// The other trusted certificate during a rotation, PEM: the certificate of the transitional version, or of the active
    /// version if the transitional version signs. `None` if the CA has no other version in rotation.
    pub(super) trusted_certificate: Option<String>,
    /// The versions that were read to find the CA.
    pub(super) read: ReadVersions,
}

impl Authority {
    /// Creates an authority. Fails if the value of the signing version lacks its certificate or its private key.
    pub(super) fn new(
        name: CredentialName,
        issuer: Option<IssuerVersion>,
        signing: StoredCertificate,
        trusted_certificate: Option<String>,
        read: ReadVersions,
    ) -> Result<Self, Failure> {
        Ok(Self {
            name,
            issuer,
            certificate: signing.certificate.ok_or(field_absent("certificate"))?,
            private_key: signing.private_key.ok_or(field_absent("private_key"))?,
            trusted_certificate,
            read,
        })
    }
}

/// Whether the transitional version of a CA signs if it is newer than the active version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransitionalParent {
    /// The transitional version signs if it is newer.
    MaySign,
    /// The active version always signs.
    MayNotSign,
}

impl Credentials {
    /// Permits a caller to use a CA.
    ///
    /// # Errors
    /// [`Failure::IssuerNotFound`] if the caller may not read it.
    pub(super) async fn permit_issuer<'a>(
        &self,
        caller: &'a Caller,
        name: &LookupName,
    ) -> Result<Permit<'a>, Failure> {
        let permit = self.authorization.permit(caller, Operation::Read, name);
        permit.await.map_err(|failure| match failure {
            Failure::NotFound => Failure::IssuerNotFound,
            failure => failure,
        })
    }

    /// Returns whether the CA that signed a version now has another active certificate.
    pub(super) async fn has_new_issuer(
        &self,
        permit: &Permit<'_>,
        version: &OpenVersion,
    ) -> Result<bool, Failure> {
        let Some(signer) = &version.stored.attributes.signed_by else {
            return Ok(false);
        };
        if signer.lookup() == version.stored.name.lookup() {
            return Ok(false);
        }
        let signer = signer.lookup();
        let Some(issuer) = self.store.active_versions(&signer).await?.active else {
            return Ok(false);
        };
        // The caller needs no permission to read the CA: the result only reveals that the CA has changed.
        let permit = permit.extended_to(Operation::Read, &signer);
        if !version.stored.credential_type.is_certificate() {
            return self
                .is_issuer_replaced(&permit, version.stored.attributes.issuer, issuer)
                .await;
        }
        let issuer = self.store.certificate_of(&permit, issuer).await?;
        let ca = StoredCertificate::parse(&version.content.value)?.ca;
        Ok(match (ca, issuer.certificate) {
            (Some(ca), Some(certificate)) => {
                !self.certificates.is_same_certificate(&ca, &certificate)
            }
            _ => false,
        })
    }

    /// Returns whether the CA's active version has another certificate than the recorded signing version, for a credential
    /// of a type other than certificate. Returns `false` if no signing version is recorded, and `true` if it was deleted.
    async fn is_issuer_replaced(
        &self,
        permit: &Permit<'_>,
        signed_with: Option<IssuerVersion>,
        active: StoredVersion,
    ) -> Result<bool, Failure> {
        let Some(id) = signed_with.and_then(|issuer| issuer.version_id) else {
            return Ok(false);
        };
        if id == active.id {
            return Ok(false);
        }
        let Some(signed_with) = self.store.repository.version_by_id(id).await? else {
            return Ok(true);
        };
        let signed_with = self
            .store
            .certificate_of(permit, signed_with)
            .await?
            .certificate;
        let active = self.store.certificate_of(permit, active).await?.certificate;
        Ok(match (signed_with, active) {
            (Some(signed_with), Some(active)) => {
                !self.certificates.is_same_certificate(&signed_with, &active)
            }
            _ => true,
        })
    }
}

impl VersionStore {
    /// Returns the permit's CA, ready to sign.
    ///
    /// Its active version signs, and must exist. With [`TransitionalParent::MaySign`], a newer transitional version signs
    /// instead.
    pub(super) async fn active_authority(
        &self,
        permit: &Permit<'_>,
        transitional_parent: TransitionalParent,
    ) -> Result<Authority, Failure> {
        let current = self.active_versions(permit.name()).await?;
        self.authority_of(permit, current, transitional_parent)
            .await
    }

    /// Returns the current versions of the permit's credential. Checks that it is a CA, but not that it can sign.
    ///
    /// # Errors
    /// [`Failure::IssuerNotFound`] if no certificate has this name, [`Failure::IssuerUnusable`] if it is not a CA.
    pub(super) async fn checked_authority(
        &self,
        permit: &Permit<'_>,
    ) -> Result<ActiveVersions, Failure> {
        let current = self.active_versions(permit.name()).await?;
        let active = current.active.as_ref();
        let active = active
            .filter(|version| version.credential_type.is_certificate())
            .ok_or(Failure::IssuerNotFound)?;
        match &active.attributes.certificate {
            Some(facts) if facts.is_certificate_authority => Ok(current),
            Some(_) => Err(Failure::IssuerUnusable(CertificateError {
                field: "certificate",
                rule: NOT_AN_AUTHORITY.into(),
            })),
            None => {
                let value = self.certificate_of(permit, active.clone()).await?;
                value
                    .certificate
                    .map(|_| current)
                    .ok_or(field_absent("certificate"))
            }
        }
    }

    /// Like [`VersionStore::active_authority`], from the CA's current versions.
    pub(super) async fn authority_of(
        &self,
        permit: &Permit<'_>,
        current: ActiveVersions,
        transitional_parent: TransitionalParent,
    ) -> Result<Authority, Failure> {
        let read = current.as_read(permit.name());
        let active = current
            .active
            .filter(|version| version.credential_type.is_certificate())
            .ok_or(Failure::IssuerNotFound)?;
        let (signing, trusted) = match current.transitional {
            Some(transitional)
                if transitional_parent == TransitionalParent::MaySign
                    && transitional.sequence > active.sequence =>
            {
                (transitional, Some(active))
            }
            transitional => (active, transitional),
        };
        permit.record_version(signing.credential_id, signing.id);
        let name = signing.name.clone();
        let issuer = signing.as_issuer();
        let trusted = match trusted {
            Some(version) => self.certificate_of(permit, version).await?.certificate,
            None => None,
        };
        let signing = self.certificate_of(permit, signing).await?;
        Authority::new(name, issuer, signing, trusted, read)
    }

    /// Decrypts the fields of a stored certificate.
    pub(super) async fn certificate_of(
        &self,
        permit: &Permit<'_>,
        version: StoredVersion,
    ) -> Result<StoredCertificate, Failure> {
        let version = self.open(permit, version).await?;
        StoredCertificate::parse(&version.content.value)
    }
}

/// Returns the error for a CA that can't sign because a field of its value is missing.
pub(super) fn field_absent(field: &'static str) -> Failure {
    Failure::IssuerUnusable(CertificateError {
        field,
        rule: "is missing".into(),
    })
}
