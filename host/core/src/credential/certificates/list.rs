//! Listing certificates with their signers and the credentials that they signed.

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

/// A certificate with all its versions, without their encrypted parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedCertificate {
    /// The id of the credential.
    pub id: Uuid,
    /// Its name, in the casing of its first writer.
    pub name: CredentialName,
    /// Its versions, newest first.
    pub versions: Vec<ListedVersion>,
}

/// One version of a [`ListedCertificate`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedVersion {
    /// The id of the version.
    pub id: Uuid,
    /// Whether it has the transitional flag.
    pub is_transitional: bool,
    /// Whether the server generated it; `None` if unknown, for versions that a caller added by the certificate's id.
    pub is_generated: Option<bool>,
    /// The facts of the certificate, if the version has one.
    pub facts: Option<CertificateFacts>,
    /// The name of the credential that signed it, if known. A self-signed certificate names itself.
    pub signed_by: Option<CredentialName>,
}

/// A credential of a type other than certificate whose newest version was generated with an issuer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IssuedCredential {
    /// Its name, in the casing of its first writer.
    pub name: CredentialName,
    /// The record; `None` if the caller may not read the credential.
    pub record: Option<IssuedRecord>,
}

/// The host's record of an issuer that signed for a credential of a type other than certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IssuedRecord {
    /// The credential's type.
    pub credential_type: CredentialType,
    /// The credential's newest version.
    pub version_id: Uuid,
    /// The CA version that signed. It may be deleted.
    pub issuer_version_id: Option<Uuid>,
    /// The serial number of the certificate; `None` if no certificate was signed, or an older release stored the version.
    pub serial_number: Option<SerialNumber>,
    /// The end of the certificate's validity; `None` in the same cases.
    pub expires_at: Option<DateTime<Utc>>,
}

/// A certificate with its relations to other credentials.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateSummary {
    /// The certificate.
    pub certificate: ListedCertificate,
    /// The signer of its newest version, if known; itself if that version is self-signed.
    pub signed_by: Option<CredentialName>,
    /// The certificates that it signed, except itself, in case-insensitive alphabetical order.
    pub signs: Vec<CredentialName>,
    /// The credentials of other types for which it signed, by name. Only filled for requests of one certificate.
    pub issued: Vec<IssuedCredential>,
}

impl Credentials {
    /// Returns all certificates that the caller may read, ordered from the newest version. `signs` contains those of them
    /// whose newest version it signed. Sends no query if the caller may read no credential.
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

    /// Returns one certificate. `signs` contains the certificates with any version that it signed, and `issued` the
    /// credentials of other types whose newest version it signed. Credentials in `issued` that the caller may not read have
    /// no record.
    ///
    /// # Errors
    /// [`Failure::NotFound`] if there is no such credential, or it is not a certificate.
    pub async fn certificate(
        &self,
        caller: &Caller,
        name: &LookupName,
    ) -> Result<CertificateSummary, Failure> {
        // Sequential: otherwise the response time would reveal whether a certificate exists that the caller may not read.
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
