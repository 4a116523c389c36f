//! Looking up the authority that signs, and the certificate that is trusted beside its own.

use crate::{
    Failure, Secret,
    credential::{
        CredentialName, Credentials, IssuerVersion, LookupName, StoredVersion,
        stored_certificate::StoredCertificate,
    },
    ports::{CertificateRefused, VersionSelection},
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
}

impl Authority {
    /// An authority out of the certificate that signs and of the one that is trusted beside it.
    pub(super) fn new(
        name: CredentialName,
        issuer: Option<IssuerVersion>,
        signing: StoredCertificate,
        trusted_certificate: Option<String>,
    ) -> Result<Self, Failure> {
        Ok(Self {
            name,
            issuer,
            certificate: signing.certificate.ok_or(member_absent("certificate"))?,
            private_key: signing.private_key.ok_or(member_absent("private_key"))?,
            trusted_certificate,
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
    /// The stored authority of this name, ready to sign.
    ///
    /// Its newest version that is not transitional signs, and there must be one; with [`TransitionalParent::MaySign`] a
    /// newer transitional one does.
    pub(super) async fn authority_in_use(
        &self,
        name: &LookupName,
        transitional_parent: TransitionalParent,
    ) -> Result<Authority, Failure> {
        let current = self
            .repository
            .versions_by_name(name, VersionSelection::Current)
            .await?;
        self.authority_of(current, transitional_parent)
    }

    /// As [`Credentials::authority_in_use`], out of the versions that [`VersionSelection::Current`] chose.
    pub(super) fn authority_of(
        &self,
        current: Vec<StoredVersion>,
        transitional_parent: TransitionalParent,
    ) -> Result<Authority, Failure> {
        let (transitional, in_use): (Vec<_>, Vec<_>) = current
            .into_iter()
            .filter(|version| version.credential_type.is_certificate())
            .partition(|version| version.is_transitional);
        let in_use = in_use.into_iter().next().ok_or(Failure::IssuerNotFound)?;
        let (signing, trusted) = match transitional.into_iter().next() {
            Some(transitional)
                if transitional_parent == TransitionalParent::MaySign
                    && transitional.sequence > in_use.sequence =>
            {
                (transitional, Some(in_use))
            }
            transitional => (in_use, transitional),
        };
        let name = signing.name.clone();
        let issuer = signing.as_issuer();
        let trusted = trusted
            .map(|version| self.certificate_of(version))
            .transpose()?
            .and_then(|trusted| trusted.certificate);
        Authority::new(name, issuer, self.certificate_of(signing)?, trusted)
    }

    /// The members of a stored certificate, decrypted.
    pub(super) fn certificate_of(
        &self,
        version: StoredVersion,
    ) -> Result<StoredCertificate, Failure> {
        StoredCertificate::parse(&self.open(version)?.content.value)
    }
}

/// An authority can't sign because a member of its value is absent.
pub(super) fn member_absent(member: &'static str) -> Failure {
    Failure::IssuerUnusable(CertificateRefused {
        member,
        rule: "is absent",
    })
}
