//! Listing certificates with their signers and the credentials that they signed, reading their versions, and finding them by
//! expiry. Also reading the public parts of a version: its contents, its effective expiry, and its chain.
//!
//! Use cases address a certificate by the id of its credential. A credential that is deleted and recreated under the same name
//! gets a new id.

use std::{collections::HashMap, sync::Arc};

use chrono::{DateTime, TimeDelta, Utc};
use uuid::Uuid;

use crate::{
    UseCaseError,
    authorization::{Authorization, Caller, EffectivePermissions, Permit},
    certificate::CertificateDetails,
    credential::{
        CredentialName, CredentialType, CredentialVersion, EffectiveExpiry, FindNames,
        IssuedCredential, IssuerVersion, ListedCertificate, LookupName, ReadCredentials,
        SignedCredential, StoredVersion, VersionAttributes, VersionStore,
        listing::{Listed, ReadableList},
        read::{for_response, in_days},
        version_store::StoredCertificate,
    },
    permission::{Actor, Operation},
    ports::{
        Certificates, CredentialKey, CredentialRepository, EXPIRY_MOMENTS, RepositoryError,
        SignedTypes, VersionSelection,
    },
};

/// A certificate with its relations to other credentials.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateSummary {
    /// The certificate.
    pub certificate: ListedCertificate,
    /// The signer of its latest version, if known; itself if that version is self-signed.
    pub signed_by: Option<CredentialName>,
    /// The certificates that it signed, except itself, in case-insensitive alphabetical order. In a list of all types, also the
    /// credentials of other types.
    pub signs: Vec<CredentialName>,
    /// The credentials of other types for which it signed, by name. Only filled for requests of one certificate.
    pub issued: Vec<IssuedCredential>,
}

/// The numbers of credentials of one type by days left until they expire or should be rotated. Each counts once, by its latest
/// version, as in a search by expiry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CredentialsByDaysLeft {
    /// The number of credentials without time left.
    pub expired: u64,
    /// The numbers of credentials by maximum days left; see [`DAYS_LEFT`]. Each entry excludes the credentials before it.
    pub within: [(u32, u64); DAYS_LEFT.len()],
    /// The number of credentials with more days left than the last entry.
    pub more: u64,
}

/// The type of counted credentials, and whether they have certificates.
pub type CountedType = (CredentialType, bool);

impl CredentialsByDaysLeft {
    /// Counts all credentials that expire or should be rotated, with one query. Types without such credentials are absent.
    pub async fn count(
        repository: &dyn CredentialRepository,
        now: DateTime<Utc>,
    ) -> Result<Vec<(CountedType, Self)>, UseCaseError> {
        let [week, month, quarter, year] =
            DAYS_LEFT.map(|days| now + TimeDelta::days(i64::from(days)));
        let moments = [now, week, month, quarter, year];
        let counted = repository.credentials_by_expiry(moments).await?.into_iter();
        let of = |[expired, within @ .., more]: [u64; EXPIRY_MOMENTS + 1]| Self {
            expired,
            within: {
                let mut numbers = within.into_iter();
                DAYS_LEFT.map(|days| (days, numbers.next().unwrap_or_default()))
            },
            more,
        };
        Ok(counted
            .map(|counted| {
                let counted_type = (counted.credential_type, counted.has_certificate);
                (counted_type, of(counted.counts))
            })
            .collect())
    }
}

/// Lists certificates and reads their versions.
pub struct CertificateCredentials {
    pub(super) authorization: Authorization,
    pub(super) store: VersionStore,
    pub(super) certificates: Arc<dyn Certificates>,
}

impl CertificateCredentials {
    /// Returns all certificates that the caller may read, by their latest version, newest first. In each, `signs` contains the
    /// returned certificates whose latest version it signed. Sends no query if the caller may read no credential.
    pub async fn all(
        &self,
        caller: &Caller,
        types: SignedTypes,
    ) -> Result<Vec<CertificateSummary>, UseCaseError> {
        let permissions = self.authorization.permissions_of(caller).await?;
        let Some(mut certificates) = ReadableList::new(caller, permissions) else {
            return Ok(Vec::new());
        };
        let mut receive = |certificate| certificates.add_versions(certificate);
        let repository = &self.store.repository;
        let actor = caller.actor();
        repository.certificates(actor, types, &mut receive).await?;
        let certificates = certificates.finish()?;
        let mut signs: HashMap<String, Vec<CredentialName>> = HashMap::new();
        for certificate in &certificates {
            let newest = certificate.versions.first().filter(|newest| {
                newest.facts.is_some() || !certificate.credential_type.is_certificate()
            });
            let signer = newest.and_then(|newest| newest.signed_by.as_ref());
            let signer = signer.map(CredentialName::lookup);
            if let Some(signer) = signer
                && !signer.is(&certificate.name)
            {
                let of_signer = signs.entry(signer.folded().to_owned()).or_default();
                of_signer.push(certificate.name.clone());
            }
        }
        Ok(certificates
            .into_iter()
            .map(|certificate| {
                let own = signs.remove(&certificate.name.folded());
                summary(certificate, own.unwrap_or_default(), Vec::new())
            })
            .collect())
    }

    /// Returns one certificate. `signs` contains the certificates with any version that it signed, and `issued` the
    /// credentials of other types whose latest version it signed. Credentials in `issued` that the caller may not read have
    /// no record.
    ///
    /// # Errors
    /// [`UseCaseError::NotFound`] if there is no such credential, or it is not a certificate of these types.
    pub async fn one(
        &self,
        caller: &Caller,
        name: &LookupName,
        types: SignedTypes,
    ) -> Result<CertificateSummary, UseCaseError> {
        let certificate = self.listed(caller, name, types).await?;
        let repository = &self.store.repository;
        let actor = caller.actor();
        let signs = repository.certificates_signed_by(actor, name).await?;
        caller.reserve(signs.iter().map(Listed::rendered_bytes).sum())?;
        let mut issued = repository.issued_by(actor, name).await?;
        caller.reserve(issued.iter().map(Listed::rendered_bytes).sum())?;
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

    /// Returns a certificate like [`CertificateCredentials::one`], but without the credentials that it signed, which can be many.
    /// Separately returns the first `count_max` of them, in the order in which they were created, and whether there are more.
    pub async fn with_first_signed(
        &self,
        caller: &Caller,
        name: &LookupName,
        count_max: u32,
    ) -> Result<(CertificateSummary, Vec<SignedCredential>, bool), UseCaseError> {
        let listing = self.listed(caller, name, SignedTypes::Certificates);
        let certificate = listing.await?;
        let permissions = self.authorization.permissions_of(caller).await?;
        let signed = self.first_signed(caller.actor(), &permissions, name, count_max);
        let (signed, has_more) = signed.await?;
        let summary = summary(certificate, Vec::new(), Vec::new());
        Ok((summary, signed, has_more))
    }

    pub(super) async fn listed(
        &self,
        caller: &Caller,
        name: &LookupName,
        types: SignedTypes,
    ) -> Result<ListedCertificate, UseCaseError> {
        // Sequential: otherwise the response time would reveal whether a certificate exists that the caller may not read.
        let permitting = self.authorization.permit(caller, Operation::Read, name);
        let permit = permitting.await?;
        let repository = &self.store.repository;
        let mut readable = ReadableList::permitted(caller, permit.permissions().clone());
        let mut receive = |certificate| readable.add_versions(certificate);
        let actor = caller.actor();
        repository
            .certificate(actor, name, types, &mut receive)
            .await?;
        let found = readable.finish()?.pop().ok_or(UseCaseError::NotFound)?;
        permit.record_resource(found.id);
        Ok(found)
    }

    /// Returns the first credentials that a certificate signed, except itself, at most `count_max`, and whether there are more.
    pub(super) async fn first_signed(
        &self,
        actor: &Actor,
        permissions: &EffectivePermissions,
        name: &LookupName,
        count_max: u32,
    ) -> Result<(Vec<SignedCredential>, bool), UseCaseError> {
        let (signers, types) = ([name.clone()], SignedTypes::All);
        let repository = &self.store.repository;
        // The certificate itself, and one more.
        let rows_max = count_max.saturating_add(2);
        let signed = repository
            .names_signed_by(actor, &signers, types, rows_max)
            .await?;
        let others = signed.into_iter().filter(|one| !name.is(&one.name));
        let mut signed: Vec<_> = others
            .map(|signed| SignedCredential {
                is_readable: permissions.allow(Operation::Read, signed.name.as_str()),
                name: signed.name,
            })
            .collect();
        let has_more = signed.len() > count_max as usize;
        signed.truncate(count_max as usize);
        Ok((signed, has_more))
    }

    /// Returns versions of a certificate, in the order of the selection.
    ///
    /// # Errors
    /// [`UseCaseError::NotFound`] if no certificate has this id; or if a version can't be read or decrypted.
    pub async fn versions(
        &self,
        caller: &Caller,
        certificate_id: Uuid,
        selection: VersionSelection,
    ) -> Result<Vec<CredentialVersion>, UseCaseError> {
        let (authorization, store) = (&self.authorization, &self.store);
        let read = Operation::Read;
        let permit = permit_certificate(authorization, store, caller, read, certificate_id).await?;
        let key = CredentialKey::Id(certificate_id);
        let versions = for_response(store, caller, key, selection).await?;
        store.render_all(&permit, not_empty(versions)?).await
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
    ) -> Result<Vec<EffectiveExpiry>, UseCaseError> {
        let until = in_days(self.store.clock.now(), within_days);
        let permissions = self.authorization.permissions_of(caller).await?;
        let Some((mut expiries, names)) = ReadableList::narrowed(caller, permissions, names) else {
            return Ok(Vec::new());
        };
        let mut receive = |mut expiry: EffectiveExpiry| {
            let link = &mut expiry.link;
            if !link
                .name
                .as_ref()
                .is_some_and(|name| expiries.may_contain(name.as_str()))
            {
                link.name = None;
                link.version_id = None;
            }
            expiries.add(expiry)
        };
        let repository = &self.store.repository;
        repository
            .effective_expiries(caller.actor(), &names, until, &mut receive)
            .await?;
        expiries.finish()
    }
}

/// Permits a caller to perform an operation on the certificate with this id. Reads only its name: otherwise the response
/// time would reveal whether a certificate exists that the caller may not read.
pub(super) async fn permit_certificate<'a>(
    authorization: &Authorization,
    store: &VersionStore,
    caller: &'a Caller,
    operation: Operation,
    certificate_id: Uuid,
) -> Result<Permit<'a>, UseCaseError> {
    let name = store.repository.name_of_certificate(certificate_id).await?;
    authorization
        .permit_stored(caller, operation, certificate_id, name.as_ref())
        .await
}

/// Permits a caller to write the certificate with this id. Returns the chosen versions, at least one, still encrypted.
pub(super) async fn permit_to_write<'a>(
    authorization: &Authorization,
    store: &VersionStore,
    caller: &'a Caller,
    certificate_id: Uuid,
    selection: VersionSelection,
) -> Result<(Permit<'a>, Vec<StoredVersion>), UseCaseError> {
    let write = Operation::Write;
    let permit = permit_certificate(authorization, store, caller, write, certificate_id).await?;
    let versions = store
        .repository
        .versions_of(CredentialKey::Id(certificate_id), selection)
        .await?;
    Ok((permit, not_empty(versions)?))
}

fn summary(
    certificate: ListedCertificate,
    mut signs: Vec<CredentialName>,
    issued: Vec<IssuedCredential>,
) -> CertificateSummary {
    signs.sort_by_cached_key(CredentialName::folded);
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

/// Returns the versions if there is at least one.
fn not_empty(versions: Vec<StoredVersion>) -> Result<Vec<StoredVersion>, UseCaseError> {
    if versions.is_empty() {
        return Err(UseCaseError::NotFound);
    }
    Ok(versions)
}

/// The maximum depth of a chain, the default of OpenSSL. Deeper links are ignored.
pub const CHAIN_DEPTH_MAX: u32 = 100;

/// The upper bounds of the ranges of days left, ascending.
pub const DAYS_LEFT: [u32; EXPIRY_MOMENTS - 1] = [7, 30, 90, 365];

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
    /// each the issuer of the one before. The chain ends at a self-signed certificate, or at the certificate of a CA that the
    /// caller may not read or that is not stored. It is empty if the version has no certificate.
    ///
    /// # Errors
    /// [`UseCaseError::ValueTooLarge`] if there are more than [`CHAIN_CERTIFICATES_MAX`].
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
                    max: CHAIN_CERTIFICATES_MAX,
                    unit: "certificates",
                });
            }
            let issuer = version.attributes.issuer;
            if let Some(id) = issuer.and_then(|issuer| issuer.version_id) {
                next = match read.by_id(caller, id).await {
                    Ok(version) => Some(version),
                    Err(UseCaseError::NotFound) => None,
                    Err(failure) => return Err(failure),
                };
            }
        }
        Ok(chain)
    }
}

/// The earliest expiry in the chain of each version, as in [`CertificateCredentials::effective_expiries`]. A chain that was
/// determined before is not read again.
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
