//! Listing certificates with their signers and the credentials that they signed, reading their versions, and finding them by
//! expiry.
//!
//! Use cases address a certificate by the id of its credential. A credential that is deleted and recreated under the same name
//! gets a new id.

use std::collections::HashMap;

use chrono::{DateTime, TimeDelta, Utc};
use uuid::Uuid;

use crate::{
    Failure,
    authorization::{Caller, Permit},
    certificate::{CertificateFacts, SerialNumber},
    credential::{
        CredentialName, CredentialType, CredentialVersion, Credentials, FindNames, LookupName,
        StoredVersion, render::ReadableList,
    },
    permission::Operation,
    ports::{CredentialKey, CredentialRepository, EXPIRY_MOMENTS, SignedTypes, VersionSelection},
};

/// A certificate, or a credential of another type with a certificate, with all its versions, without their encrypted parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedCertificate {
    /// The id of the credential.
    pub id: Uuid,
    /// Its name, in the casing of its first writer.
    pub name: CredentialName,
    /// Its type.
    pub credential_type: CredentialType,
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
    /// Whether the server generated it; `None` (unknown) for versions that a caller added by the certificate's id.
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
    /// The certificates that it signed, except itself, in case-insensitive alphabetical order. In a list of all types, also the
    /// credentials of other types.
    pub signs: Vec<CredentialName>,
    /// The credentials of other types for which it signed, by name. Only filled for requests of one certificate.
    pub issued: Vec<IssuedCredential>,
}

/// The effective expiry of a certificate's active version: the earliest expiry in its chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EffectiveExpiry {
    /// The certificate's name, in the casing of its first writer.
    pub name: CredentialName,
    /// The time when its active version was created.
    pub version_created_at: DateTime<Utc>,
    /// The link of its chain that expires first; of several, the link nearest to the certificate.
    pub link: ChainLink,
}

/// One certificate of a chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChainLink {
    /// Its depth: 0 is the certificate itself, 1 its issuer, and so on.
    pub depth: u32,
    /// The name of its credential. `None` if the issuer was never stored, or the caller may not read it.
    pub name: Option<CredentialName>,
    /// The id of its version, if the version still exists.
    pub version_id: Option<Uuid>,
    /// The end of its validity.
    pub expires_at: DateTime<Utc>,
}

/// The numbers of certificates of one type by days left until they expire. Each certificate counts once, by its newest version,
/// as in a search by expiry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CertificatesByDaysLeft {
    /// The number of expired certificates.
    pub expired: u64,
    /// The numbers of certificates by maximum days left; see [`DAYS_LEFT`]. Each entry excludes the certificates before it.
    pub within: [(u32, u64); DAYS_LEFT.len()],
    /// The number of certificates with more days left than the last entry.
    pub more: u64,
}

impl CertificatesByDaysLeft {
    /// Counts all certificates by the type of their credential, with one query. Types without certificates are absent.
    pub async fn count(
        repository: &dyn CredentialRepository,
        now: DateTime<Utc>,
    ) -> Result<Vec<(CredentialType, Self)>, Failure> {
        let [week, month, quarter, year] =
            DAYS_LEFT.map(|days| now + TimeDelta::days(i64::from(days)));
        let counted = repository
            .certificates_by_expiry([now, week, month, quarter, year])
            .await?;
        Ok(counted
            .into_iter()
            .map(|(credential_type, numbers)| (credential_type, Self::of(numbers)))
            .collect())
    }

    fn of([expired, week, month, quarter, year, more]: [u64; EXPIRY_MOMENTS + 1]) -> Self {
        let [first, second, third, fourth] = DAYS_LEFT;
        Self {
            expired,
            within: [
                (first, week),
                (second, month),
                (third, quarter),
                (fourth, year),
            ],
            more,
        }
    }
}

impl Credentials {
    /// Returns all certificates that the caller may read, ordered from the newest version. In each, `signs` contains the
    /// returned certificates whose newest version it signed. Sends no query if the caller may read no credential.
    pub async fn certificates(
        &self,
        caller: &Caller,
        types: SignedTypes,
    ) -> Result<Vec<CertificateSummary>, Failure> {
        let permissions = self.authorization.permissions_of(caller).await?;
        if !permissions.allow_somewhere(Operation::Read) {
            return Ok(Vec::new());
        }
        let mut certificates = ReadableList::new(caller, &permissions);
        let mut receive = |certificate| certificates.add(certificate);
        self.store
            .repository
            .certificates(types, &mut receive)
            .await?;
        let certificates = certificates.finish()?;
        let mut signs: HashMap<String, Vec<CredentialName>> = HashMap::new();
        for certificate in &certificates {
            let signer = certificate
                .versions
                .first()
                .filter(|newest| {
                    newest.facts.is_some() || !certificate.credential_type.is_certificate()
                })
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
    /// [`Failure::NotFound`] if there is no such credential, or it is not a certificate of these types.
    pub async fn certificate(
        &self,
        caller: &Caller,
        name: &LookupName,
        types: SignedTypes,
    ) -> Result<CertificateSummary, Failure> {
        // Sequential: otherwise the response time would reveal whether a certificate exists that the caller may not read.
        let permit = self
            .authorization
            .permit(caller, Operation::Read, name)
            .await?;
        let certificate = self.store.repository.certificate(name, types).await?;
        let certificate = certificate.ok_or(Failure::NotFound)?;
        permit.record_resource(certificate.id);
        let signs = self.store.repository.certificates_signed_by(name).await?;
        let mut issued = self.store.repository.issued_by(name).await?;
        if !issued.is_empty() {
            let permissions = self.authorization.permissions_of(caller).await?;
            for credential in &mut issued {
                if !permissions.allow(Operation::Read, credential.name.as_str()) {
                    credential.record = None;
                }
            }
        }
        Ok(summary(certificate, signs, issued))
    }

    /// Returns versions of a certificate, in the order of the selection.
    ///
    /// # Errors
    /// [`Failure::NotFound`] if no certificate has this id; or if a version can't be read or decrypted.
    pub async fn certificate_versions(
        &self,
        caller: &Caller,
        certificate_id: Uuid,
        selection: VersionSelection,
    ) -> Result<Vec<CredentialVersion>, Failure> {
        let permit = self
            .permit_certificate(caller, Operation::Read, certificate_id)
            .await?;
        let versions = self
            .stored_for_response(caller, CredentialKey::Id(certificate_id), selection)
            .await?;
        self.render_all(&permit, require_certificate(versions)?)
            .await
    }

    /// Permits a caller to perform an operation on the certificate with this id. Returns the chosen versions, at least one,
    /// still encrypted.
    pub(super) async fn permitted_certificate_versions<'a>(
        &self,
        caller: &'a Caller,
        operation: Operation,
        certificate_id: Uuid,
        selection: VersionSelection,
    ) -> Result<(Permit<'a>, Vec<StoredVersion>), Failure> {
        let permit = self
            .permit_certificate(caller, operation, certificate_id)
            .await?;
        let versions = self
            .stored_certificate_versions(certificate_id, selection)
            .await?;
        Ok((permit, versions))
    }

    /// Permits a caller to perform an operation on the certificate with this id. Reads only its name: otherwise the response
    /// time would reveal whether a certificate exists that the caller may not read.
    pub(super) async fn permit_certificate<'a>(
        &self,
        caller: &'a Caller,
        operation: Operation,
        certificate_id: Uuid,
    ) -> Result<Permit<'a>, Failure> {
        let name = self
            .store
            .repository
            .name_of_certificate(certificate_id)
            .await?;
        self.authorization
            .permit_stored(caller, operation, name.as_ref())
            .await
    }

    /// Returns versions of a certificate, at least one, still encrypted.
    pub(super) async fn stored_certificate_versions(
        &self,
        certificate_id: Uuid,
        selection: VersionSelection,
    ) -> Result<Vec<StoredVersion>, Failure> {
        let versions = self
            .store
            .repository
            .versions_by_credential(certificate_id, selection)
            .await?;
        require_certificate(versions)
    }

    /// Returns the certificates that the caller may read and whose active version effectively expires within this many times
    /// 24 hours, or has already expired, ordered by expiry. Sends no query if the caller may read no credential.
    ///
    /// A version's chain consists of the CA versions that actually signed, even if the CAs have newer versions. It ends at a
    /// self-signed certificate, at an unknown issuer, or at [`CHAIN_DEPTH_MAX`].
    pub async fn effective_expiries(
        &self,
        caller: &Caller,
        names: &FindNames,
        within_days: i64,
    ) -> Result<Vec<EffectiveExpiry>, Failure> {
        let until = self.time_in_days(within_days);
        let permissions = self.authorization.permissions_of(caller).await?;
        if !permissions.allow_somewhere(Operation::Read) {
            return Ok(Vec::new());
        }
        let may_read = |name: &CredentialName| permissions.allow(Operation::Read, name.as_str());
        let mut expiries = ReadableList::new(caller, &permissions);
        let mut receive = |mut expiry: EffectiveExpiry| {
            let link = &mut expiry.link;
            if !link.name.as_ref().is_some_and(may_read) {
                link.name = None;
                link.version_id = None;
            }
            expiries.add(expiry)
        };
        let finding = self
            .store
            .repository
            .effective_expiries(names, until, &mut receive);
        finding.await?;
        expiries.finish()
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

/// Returns the versions if there is at least one and the credential is a certificate.
fn require_certificate(versions: Vec<StoredVersion>) -> Result<Vec<StoredVersion>, Failure> {
    match versions.first() {
        Some(version) if version.credential_type.is_certificate() => Ok(versions),
        _ => Err(Failure::NotFound),
    }
}

/// The maximum depth of a chain, the default of OpenSSL. Deeper links are ignored.
pub const CHAIN_DEPTH_MAX: u32 = 100;

/// The upper bounds of the ranges of days left, ascending.
pub const DAYS_LEFT: [u32; EXPIRY_MOMENTS - 1] = [7, 30, 90, 365];
