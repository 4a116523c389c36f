//! Listing certificates, with who signed them and what they sign.

use std::collections::HashMap;

use uuid::Uuid;

use crate::{
    Failure,
    authorization::Caller,
    certificate::CertificateFacts,
    credential::{CredentialName, Credentials, LookupName, readable::ReadableList},
    permission::Operation,
};

/// A certificate with all its versions, without what is encrypted of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedCertificate {
    /// Identifies the credential.
    pub id: Uuid,
    /// Its name, in the casing of its first writer.
    pub name: CredentialName,
    /// Its versions, newest first.
    pub versions: Vec<ListedVersion>,
}

/// One version of a [`ListedCertificate`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedVersion {
    /// Identifies the version.
    pub id: Uuid,
    /// Whether it carries the transitional flag.
    pub is_transitional: bool,
    /// Whether the service made it; unknown for versions that were added as they are.
    pub is_generated: Option<bool>,
    /// What the certificate says of itself, when the version has one.
    pub facts: Option<CertificateFacts>,
    /// The name of the credential whose certificate signed it, as far as that is known. A self-signed one names itself.
    pub signed_by: Option<CredentialName>,
}

/// A certificate, and its place among the others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateSummary {
    /// The certificate.
    pub certificate: ListedCertificate,
    /// Who signed its newest version, as far as that is known; itself, when that one is self-signed.
    pub signed_by: Option<CredentialName>,
    /// The certificates that it signs, without itself, in alphabetical order without regard to case.
    pub signs: Vec<CredentialName>,
}

impl Credentials {
    /// All certificates that the caller may read, the one with the newest version first. Each signs those of them whose
    /// newest version it signed. Where the caller may read nothing, nothing is looked for.
    ///
    /// # Errors
    /// When the database can't answer.
    pub async fn certificates(&self, caller: &Caller) -> Result<Vec<CertificateSummary>, Failure> {
        let rules = self.authorization.rules_of(caller).await?;
        if !rules.allow_somewhere(Operation::Read) {
            return Ok(Vec::new());
        }
        let mut certificates = ReadableList::new(caller, &rules);
        let mut receive = |certificate| certificates.add(certificate);
        self.repository.certificates(&mut receive).await?;
        let certificates = certificates.finish()?;
        let mut signs: HashMap<String, Vec<CredentialName>> = HashMap::new();
        for certificate in &certificates {
            let signer = certificate
                .versions
                .first()
                .and_then(|newest| newest.signed_by.as_ref())
                .map(CredentialName::lookup)
                .filter(|signer| *signer != certificate.name.lookup());
            if let Some(signer) = signer {
                signs
                    .entry(signer.folded().to_owned())
                    .or_default()
                    .push(certificate.name.clone());
            }
        }
        Ok(certificates
            .into_iter()
            .map(|certificate| {
                let own = signs.remove(certificate.name.lookup().folded());
                summary(certificate, own.unwrap_or_default())
            })
            .collect())
    }

    /// One certificate. It signs those of which it signed any version.
    ///
    /// # Errors
    /// [`Failure::NotFound`] when there is no such credential, or it is no certificate.
    pub async fn certificate(
        &self,
        caller: &Caller,
        name: &LookupName,
    ) -> Result<CertificateSummary, Failure> {
        // One after the other: how long it takes to read what the caller may not would tell that it is there.
        let permit = self
            .authorization
            .permit(caller, Operation::Read, name)
            .await?;
        let certificate = self.repository.certificate(name).await?;
        let certificate = certificate.ok_or(Failure::NotFound)?;
        permit.touched(certificate.id);
        let signs = self.repository.certificates_signed_by(name).await?;
        Ok(summary(certificate, signs))
    }
}

fn summary(certificate: ListedCertificate, mut signs: Vec<CredentialName>) -> CertificateSummary {
    signs.sort_by_cached_key(|name| name.lookup().folded().to_owned());
    let newest = certificate.versions.first();
    let is_self_signed = newest
        .and_then(|version| version.facts.as_ref())
        .is_some_and(|facts| facts.is_self_signed);
    let signed_by = if is_self_signed {
        Some(certificate.name.clone())
    } else {
        newest.and_then(|version| version.signed_by.clone())
    };
    CertificateSummary {
        certificate,
        signed_by,
        signs,
    }
}
