//! Listing certificates, with who signed them and what they sign.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use uuid::Uuid;

use crate::{
    Failure,
    authorization::Caller,
    certificate::{CertificateFacts, SerialNumber},
    credential::{CredentialName, CredentialType, Credentials, LookupName, readable::ReadableList},
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

/// A credential of another type than certificate whose newest version was made with an issuer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IssuedCredential {
    /// Its name, in the casing of its first writer.
    pub name: CredentialName,
    /// What was recorded; `None` if the caller may not read the credential.
    pub record: Option<IssuedRecord>,
}

/// What the host recorded when an issuer signed for a credential of another type than certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IssuedRecord {
    /// The credential's type.
    pub credential_type: CredentialType,
    /// The credential's newest version.
    pub version_id: Uuid,
    /// The version of the authority that signed. It need not exist any more.
    pub issuer_version_id: Option<Uuid>,
    /// The serial number of the certificate; unknown if nothing was signed, or an older release stored the version.
    pub serial_number: Option<SerialNumber>,
    /// The end of the certificate's validity; unknown in the same cases.
    pub expires_at: Option<DateTime<Utc>>,
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
    /// The credentials of other types for which it signed, by name; looked for only if one certificate is asked for.
    pub issued: Vec<IssuedCredential>,
}

impl Credentials {
    /// All certificates that the caller may read, the one with the newest version first. Each signs those of them whose
    /// newest version has a certificate that it signed. Where the caller may read nothing, nothing is looked for.
    ///
    /// # Errors
    /// If the query fails.
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
                .filter(|newest| newest.facts.is_some())
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
                summary(certificate, own.unwrap_or_default(), Vec::new())
            })
            .collect())
    }

    /// One certificate. It signs those of which it signed any version, and it issued the credentials of other types whose
    /// newest version it signed. Of the latter, those that the caller may not read are named alone.
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
        let mut issued = self.repository.issued_by(name).await?;
        if !issued.is_empty() {
            let rules = self.authorization.rules_of(caller).await?;
            for credential in &mut issued {
                if !rules.allow(Operation::Read, credential.name.as_str()) {
                    credential.record = None;
                }
            }
        }
        Ok(summary(certificate, signs, issued))
    }
}

fn summary(
    certificate: ListedCertificate,
    mut signs: Vec<CredentialName>,
    issued: Vec<IssuedCredential>,
) -> CertificateSummary {
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
        issued,
    }
}
