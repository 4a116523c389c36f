//! Reading the public parts of a certificate's version: its contents, its effective expiry, and its chain.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use uuid::Uuid;

use crate::{
    UseCaseError,
    authorization::Caller,
    certificate::CertificateDetails,
    credential::{
        CHAIN_DEPTH_MAX, CertificateCredentials, CredentialVersion, IssuerVersion, ReadCredentials,
        VersionAttributes, content::StoredCertificate,
    },
    ports::{CredentialRepository, RepositoryError},
};

/// The public parts of a certificate's version, never its private key. Each certificate is a PEM text of its own, without any
/// text around it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicParts {
    /// The certificates in the field `certificate`: usually one.
    pub certificates: Vec<String>,
    /// The certificates in the field `ca`: the issuing CA first.
    pub authorities: Vec<String>,
    /// The contents of the certificate; `None` if it is missing or malformed.
    pub details: Option<CertificateDetails>,
    /// The earliest expiry in its chain.
    pub effective_expires_at: Option<DateTime<Utc>>,
}

impl CertificateCredentials {
    /// Returns the public parts of a version that the caller has read.
    ///
    /// # Errors
    /// [`UseCaseError::NotFound`] if it is not a certificate.
    pub async fn public_parts(
        &self,
        version: &CredentialVersion,
    ) -> Result<PublicParts, UseCaseError> {
        if !version.credential_type.is_certificate() {
            return Err(UseCaseError::NotFound);
        }
        let repository = self.store.repository.as_ref();
        let mut expiries = ChainExpiries::new(repository);
        let effective_expires_at = expiries.of(version.id, &version.attributes).await?;
        let stored = StoredCertificate::parse(&version.content.value)?;
        let all = |pem: Option<&String>| pem.map(|pem| self.certificates.certificates_in(pem));
        let certificate = stored.certificate.as_ref();
        Ok(PublicParts {
            certificates: all(certificate).unwrap_or_default(),
            authorities: all(stored.ca.as_ref()).unwrap_or_default(),
            details: certificate.and_then(|pem| self.certificates.details(pem)),
            effective_expires_at,
        })
    }

    /// Returns the certificate of a version that the caller has read, followed by the certificates of the CAs that signed it,
    /// each the issuer of the one before. The chain ends at a self-signed certificate, and after the issuer of a CA that the
    /// caller may not read, or that is not stored.
    ///
    /// # Errors
    /// [`UseCaseError::NotFound`] if the version has no certificate. [`UseCaseError::ValueTooLarge`] if there are more than
    /// [`CHAIN_CERTIFICATES_MAX`].
    pub async fn chain(
        &self,
        caller: &Caller,
        read: &ReadCredentials,
        version: CredentialVersion,
    ) -> Result<Vec<String>, UseCaseError> {
        let mut chain: Vec<String> = Vec::new();
        let mut next = Some(version);
        while let Some(version) = next.take() {
            let stored = StoredCertificate::parse(&version.content.value)?;
            let first = |pem: Option<&String>| {
                let all = self.certificates.certificates_in(pem?);
                all.into_iter().next()
            };
            if chain.is_empty() {
                chain.extend(first(stored.certificate.as_ref()));
            }
            let issuer = first(stored.ca.as_ref());
            match issuer.filter(|issuer| !chain.contains(issuer)) {
                Some(issuer) if !chain.is_empty() => chain.push(issuer),
                _ => break,
            }
            if chain.len() > CHAIN_CERTIFICATES_MAX {
                return Err(UseCaseError::ValueTooLarge {
                    what: "a chain",
                    limit: "20 certificates",
                });
            }
            let issuer = version.attributes.issuer;
            if let Some(id) = issuer.and_then(|issuer| issuer.version_id) {
                next = match read.by_id(caller, id).await {
                    Ok(version) => {
                        Some(version).filter(|read| read.credential_type.is_certificate())
                    }
                    Err(UseCaseError::NotFound) => None,
                    Err(failure) => return Err(failure),
                };
            }
        }
        if chain.is_empty() {
            return Err(UseCaseError::NotFound);
        }
        Ok(chain)
    }
}

/// The earliest expiry in the chain of each version, as in [`CertificateCredentials::effective_expiries`]. Each version is read
/// at most once.
pub(super) struct ChainExpiries<'r> {
    repository: &'r dyn CredentialRepository,
    known: HashMap<Uuid, DateTime<Utc>>,
}

impl<'r> ChainExpiries<'r> {
    pub(super) fn new(repository: &'r dyn CredentialRepository) -> Self {
        Self {
            repository,
            known: HashMap::new(),
        }
    }

    /// Returns the earliest expiry in the chain of a version; `None` if it has no certificate.
    pub(super) async fn of(
        &mut self,
        id: Uuid,
        attributes: &VersionAttributes,
    ) -> Result<Option<DateTime<Utc>>, RepositoryError> {
        let Some(facts) = &attributes.certificate else {
            return Ok(None);
        };
        let mut earliest = facts.expires_at;
        let mut issuer = attributes.issuer;
        for _ in 0..CHAIN_DEPTH_MAX {
            let Some(IssuerVersion {
                version_id,
                expires_at,
            }) = issuer
            else {
                break;
            };
            earliest = earliest.min(expires_at);
            let Some(version_id) = version_id else { break };
            if let Some(known) = self.known.get(&version_id) {
                earliest = earliest.min(*known);
                break;
            }
            let version = self.repository.version_by_id(version_id).await?;
            issuer = version.and_then(|version| version.attributes.issuer);
        }
        self.known.insert(id, earliest);
        Ok(Some(earliest))
    }
}

/// The maximum number of certificates in a returned chain.
pub const CHAIN_CERTIFICATES_MAX: usize = 20;
