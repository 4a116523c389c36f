//! Looking up the authority that signs, and the certificate that is trusted beside its own.

use crate::{
    Failure, Secret,
    authorization::{Caller, Permit},
    credential::{
        CredentialName, Credentials, IssuerVersion, LookupName, StoredVersion,
        current::CurrentVersions, stored_certificate::StoredCertificate,
    },
    permission::Operation,
    ports::{CertificateRefused, NOT_AN_AUTHORITY, ReadVersions},
};

/// The version of an authority that signs, decrypted.
pub(super) struct Authority {
    /// The authority's name, in the casing of its first writer.
    pub(super) name: CredentialName,
    /// The version that signs.
    pub(super) issuer: Option<IssuerVersion>,
    /// The certificate of the version that signs, PEM.
    pub(super) certificate: String,
    /// Its private key, PEM.
    pub(super) private_key: Secret,
    /// The certificate of the other version in rotation, PEM: of the transitional one, or, where that one signs, of the
    /// newest that is not. Absent when the authority has no other.
    pub(super) trusted_certificate: Option<String>,
    /// What was read to find it.
    pub(super) read: ReadVersions,
}

impl Authority {
    /// An authority out of the certificate that signs and of the one that is trusted beside it.
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
            certificate: signing.certificate.ok_or(member_absent("certificate"))?,
            private_key: signing.private_key.ok_or(member_absent("private_key"))?,
            trusted_certificate,
            read,
        })
    }
}

/// Whether the transitional version of an authority may sign when it is newer than the one in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransitionalParent {
    /// It signs when it is newer.
    MaySign,
    /// The newest version that is not transitional signs.
    MayNotSign,
}

impl Credentials {
    /// Lets a caller use an authority.
    ///
    /// # Errors
    /// [`Failure::IssuerNotFound`] when the caller may not read it.
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

    /// The stored authority that the permit is about, ready to sign.
    ///
    /// Its newest version that is not transitional signs, and there must be one; with [`TransitionalParent::MaySign`] a
    /// newer transitional one does.
    pub(super) async fn authority_in_use(
        &self,
        permit: &Permit<'_>,
        transitional_parent: TransitionalParent,
    ) -> Result<Authority, Failure> {
        let current = self.current_versions(permit.name()).await?;
        self.authority_of(permit, current, transitional_parent)
            .await
    }

    /// Checks that the permit is about a certificate authority. Whether it can sign, it shows when it does.
    ///
    /// # Errors
    /// [`Failure::IssuerNotFound`] when it does not exist, [`Failure::IssuerUnusable`] when it is no authority.
    pub(super) async fn check_authority(&self, permit: &Permit<'_>) -> Result<(), Failure> {
        let in_use = self.current_versions(permit.name()).await?.in_use;
        let in_use = in_use
            .filter(|version| version.credential_type.is_certificate())
            .ok_or(Failure::IssuerNotFound)?;
        match &in_use.certificate {
            Some(facts) if facts.is_certificate_authority => Ok(()),
            Some(_) => Err(Failure::IssuerUnusable(CertificateRefused {
                member: "certificate",
                rule: NOT_AN_AUTHORITY.into(),
            })),
            None => {
                let value = self.certificate_of(permit, in_use).await?;
                value
                    .certificate
                    .map(drop)
                    .ok_or(member_absent("certificate"))
            }
        }
    }

    /// As [`Credentials::authority_in_use`], out of its versions.
    pub(super) async fn authority_of(
        &self,
        permit: &Permit<'_>,
        current: CurrentVersions,
        transitional_parent: TransitionalParent,
    ) -> Result<Authority, Failure> {
        let read = current.as_read(permit.name());
        let in_use = current
            .in_use
            .filter(|version| version.credential_type.is_certificate())
            .ok_or(Failure::IssuerNotFound)?;
        let (signing, trusted) = match current.transitional {
            Some(transitional)
                if transitional_parent == TransitionalParent::MaySign
                    && transitional.sequence > in_use.sequence =>
            {
                (transitional, Some(in_use))
            }
            transitional => (in_use, transitional),
        };
        permit.touched_version(signing.credential_id, signing.id);
        let name = signing.name.clone();
        let issuer = signing.as_issuer();
        let trusted = match trusted {
            Some(version) => self.certificate_of(permit, version).await?.certificate,
            None => None,
        };
        let signing = self.certificate_of(permit, signing).await?;
        Authority::new(name, issuer, signing, trusted, read)
    }

    /// The members of a stored certificate, decrypted.
    pub(super) async fn certificate_of(
        &self,
        permit: &Permit<'_>,
        version: StoredVersion,
    ) -> Result<StoredCertificate, Failure> {
        let version = self.open(permit, version).await?;
        StoredCertificate::parse(&version.content.value)
    }
}

/// An authority can't sign because a member of its value is absent.
pub(super) fn member_absent(member: &'static str) -> Failure {
    Failure::IssuerUnusable(CertificateRefused {
        member,
        rule: "is absent".into(),
    })
}
