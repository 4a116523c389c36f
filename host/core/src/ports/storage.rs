//! Stored credentials and their versions.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use uuid::Uuid;

use crate::{
    certificate::CertificateFacts,
    credential::{
        CredentialName, CredentialType, EffectiveExpiry, Find, FindNames, FoundCredential,
        GeneratedCredential, IssuedCredential, IssuerVersion, ListedCertificate, LookupName,
        PluginDigest, PluginIdentity, StoredVersion,
    },
    ports::{
        CredentialKey, Envelope, NewestSize, ReadVersions, Receive, VersionSelection, VersionsSize,
    },
};

/// Stored credentials and their versions.
#[async_trait]
pub trait CredentialRepository: Send + Sync {
    /// Returns the name of the credential that the version with this id belongs to, or `None`. Reads only the name.
    async fn name_of_version(&self, id: Uuid) -> Result<Option<CredentialName>, RepositoryError>;

    /// Returns the name of the certificate credential with this id, or `None`. Reads only the name.
    async fn name_of_certificate(
        &self,
        credential_id: Uuid,
    ) -> Result<Option<CredentialName>, RepositoryError>;

    /// Returns the stored name of a credential, in the casing of its first writer, or `None`. Reads only the name.
    async fn stored_name(
        &self,
        name: &LookupName,
    ) -> Result<Option<CredentialName>, RepositoryError>;

    /// Returns the version with this id, or `None`.
    async fn version_by_id(&self, id: Uuid) -> Result<Option<StoredVersion>, RepositoryError>;

    /// Returns the chosen versions of one credential, in the order of [`VersionSelection`]. Empty if there is no credential.
    async fn versions_by_name(
        &self,
        name: &LookupName,
        selection: VersionSelection,
    ) -> Result<Vec<StoredVersion>, RepositoryError>;

    /// Returns the chosen versions of the credential with this id, in the order of [`VersionSelection`]. Empty if there is
    /// no credential.
    async fn versions_by_credential(
        &self,
        credential_id: Uuid,
        selection: VersionSelection,
    ) -> Result<Vec<StoredVersion>, RepositoryError>;

    /// Returns the size of the newest versions of a credential, at most `count_max`. Reads no value.
    async fn size_of_versions(
        &self,
        credential: CredentialKey<'_>,
        count_max: u32,
    ) -> Result<VersionsSize, RepositoryError>;

    /// Returns the size of the newest version of each of these credentials that exists, in no order. Reads no value.
    async fn newest_sizes_by_names(
        &self,
        names: &[LookupName],
    ) -> Result<Vec<NewestSize>, RepositoryError>;

    /// Returns the newest version of each of these credentials that exists, in no order.
    async fn newest_by_names(
        &self,
        names: &[LookupName],
    ) -> Result<Vec<StoredVersion>, RepositoryError>;

    /// Returns the newest version of each credential that one of these credentials signed, at most `count_max`, in the
    /// order in which the credentials were created, with one query.
    async fn newest_signed_by(
        &self,
        signers: &[LookupName],
        types: SignedTypes,
        count_max: u32,
    ) -> Result<Vec<StoredVersion>, RepositoryError>;

    /// Like [`CredentialRepository::newest_signed_by`], but returns only the fields that matter for permissions.
    async fn names_signed_by(
        &self,
        signers: &[LookupName],
        types: SignedTypes,
        count_max: u32,
    ) -> Result<Vec<SignedName>, RepositoryError>;

    /// Finds the credentials of a search, newest first, until the receiver breaks.
    async fn find(
        &self,
        find: &Find,
        receive: Receive<'_, FoundCredential>,
    ) -> Result<(), RepositoryError>;

    /// Finds the credentials of these names of which this plugin generated the newest, the active or the transitional
    /// version, newest first, with one query, until the receiver breaks.
    async fn generated_by(
        &self,
        digest: &PluginDigest,
        names: &FindNames,
        receive: Receive<'_, GeneratedCredential>,
    ) -> Result<(), RepositoryError>;

    /// Finds the certificates of these names whose active version has a chain in which a certificate expires at or before
    /// this time, ordered by expiry, with one query, until the receiver breaks.
    async fn effective_expiries(
        &self,
        names: &FindNames,
        until: DateTime<Utc>,
        receive: Receive<'_, EffectiveExpiry>,
    ) -> Result<(), RepositoryError>;

    /// Finds all certificates, ordered from the newest version, with one query, until the receiver breaks.
    async fn certificates(
        &self,
        receive: Receive<'_, ListedCertificate>,
    ) -> Result<(), RepositoryError>;

    /// Returns the certificate of this name, or `None`.
    async fn certificate(
        &self,
        name: &LookupName,
    ) -> Result<Option<ListedCertificate>, RepositoryError>;

    /// Counts certificates by the expiry of their newest version: until the first of these ascending times, after it until
    /// the second, and so on. The last number counts the certificates that expire after all of them.
    async fn certificates_by_expiry(
        &self,
        moments: [DateTime<Utc>; EXPIRY_MOMENTS],
    ) -> Result<[u64; EXPIRY_MOMENTS + 1], RepositoryError>;

    /// Returns the names of the certificates with any version signed by this certificate, except itself, each once, in no
    /// order.
    async fn certificates_signed_by(
        &self,
        signer: &LookupName,
    ) -> Result<Vec<CredentialName>, RepositoryError>;

    /// Returns the credentials of types other than certificate whose newest version was generated with this issuer, by name.
    async fn issued_by(
        &self,
        signer: &LookupName,
    ) -> Result<Vec<IssuedCredential>, RepositoryError>;

    /// Adds a version, and the credential if it is its first version, in one transaction. The transaction first checks that
    /// the `unchanged` versions are unchanged, then the condition.
    ///
    /// If it returns [`Appended::Written`], the version is on disk.
    ///
    /// # Errors
    /// If the transaction fails. Nothing is written then, unless only the response to the commit was lost.
    async fn append(
        &self,
        version: NewVersion,
        condition: AppendCondition,
        unchanged: &[ReadVersions],
    ) -> Result<Appended, RepositoryError>;

    /// Adds versions, all of them or none, in one transaction.
    ///
    /// If it returns [`AllAppended::Written`], all of them are on disk.
    ///
    /// # Errors
    /// If the transaction fails. Nothing is written then, unless only the response to the commit was lost.
    async fn append_all(&self, additions: Additions) -> Result<AllAppended, RepositoryError>;

    /// Moves the transitional flag of a credential to a version, or clears it, and adds versions of other credentials, in
    /// one transaction.
    ///
    /// # Errors
    /// If the transaction fails. Nothing is changed then, unless only the response to the commit was lost.
    async fn move_transitional(
        &self,
        credential_id: Uuid,
        to: TransitionalVersion,
        additions: Additions,
    ) -> Result<TransitionalMoved, RepositoryError>;

    /// Deletes one version of a credential that has further versions, and adds versions of other credentials, in one
    /// transaction.
    ///
    /// # Errors
    /// If the transaction fails. Nothing is deleted then, unless only the response to the commit was lost.
    async fn delete_version(
        &self,
        credential_id: Uuid,
        version_id: Uuid,
        additions: Additions,
    ) -> Result<VersionDeleted, RepositoryError>;

    /// Deletes a credential with all its versions. Returns its id, or `None` if it did not exist.
    ///
    /// # Errors
    /// If the transaction fails. Nothing is deleted then, unless only the response to the commit was lost.
    async fn delete(&self, name: &LookupName) -> Result<Option<Uuid>, RepositoryError>;

    /// Checks the health of the database without writing.
    ///
    /// # Errors
    /// If the query fails, or the database is known to be read-only.
    async fn ping(&self) -> Result<(), RepositoryError>;
}

/// The number of times that [`CredentialRepository::certificates_by_expiry`] takes.
pub const EXPIRY_MOMENTS: usize = 5;

/// Versions of several credentials to add atomically, with the preconditions of the transaction.
#[derive(Clone, Debug, Default)]
pub struct Additions {
    /// The versions in the order in which they are added, each with the condition on its credential.
    pub versions: Vec<(NewVersion, AppendCondition)>,
    /// The versions that must be unchanged.
    pub unchanged: Vec<ReadVersions>,
    /// The results of [`CredentialRepository::newest_signed_by`] that must be unchanged.
    pub signed: Vec<ReadSigned>,
}

/// A version to add.
#[derive(Clone, Debug)]
pub struct NewVersion {
    /// Its id, to which its envelope is bound.
    pub id: Uuid,
    /// The credential's name. An existing credential keeps its casing.
    pub name: CredentialName,
    /// The credential's type.
    pub credential_type: CredentialType,
    /// The time of its creation.
    pub created_at: DateTime<Utc>,
    /// Whether it has the transitional flag.
    pub is_transitional: bool,
    /// Whether the server generated it; `None` if unknown.
    pub is_generated: Option<bool>,
    /// The facts of the certificate in its value; for another type, of the certificate that its issuer signed.
    pub certificate: Option<CertificateFacts>,
    /// The name of the credential whose certificate signed it.
    pub signed_by: Option<CredentialName>,
    /// The issuer; `None` if the version is self-signed or its issuer is unknown.
    pub issuer: Option<IssuerVersion>,
    /// The plugin that generated it.
    pub provenance: Option<PluginIdentity>,
    /// Value, parameters and metadata, encrypted.
    pub envelope: Envelope,
}

/// A condition for adding a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AppendCondition {
    /// Only the type must match.
    Always,
    /// The credential exists and has this id: it was neither deleted nor recreated.
    CredentialIs(Uuid),
    /// The newest version of the credential, by sequence, is this one; `None` if the credential has no versions.
    NewestIs(Option<Uuid>),
}

/// The result of adding a version.
#[derive(Clone, Debug)]
pub enum Appended {
    /// The condition does not hold. Nothing was written.
    Changed,
    /// The credential exists with this casing of its name, and the version was encrypted for another. Nothing was written.
    NamedOtherwise(CredentialName),
    /// An `unchanged` version has changed. Nothing was written.
    Outdated,
    /// The version is transitional, and the credential already has a transitional version. Nothing was written.
    TransitionalExists,
    /// The credential exists with this other type. Nothing was written.
    TypeDiffers(CredentialType),
    /// The version was written.
    Written(Box<StoredVersion>),
}

/// The result of adding versions of several credentials.
#[derive(Debug)]
pub enum AllAppended {
    /// A precondition does not hold. Nothing was written. Returns the versions in their order.
    Changed(Vec<NewVersion>),
    /// The versions were written. Returns them in their order.
    Written(Vec<StoredVersion>),
}

/// The version of a credential to get the transitional flag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransitionalVersion {
    /// The version with this id.
    Id(Uuid),
    /// The newest version with a certificate.
    Latest,
    /// No version.
    None,
}

/// The result of moving the transitional flag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TransitionalMoved {
    /// A precondition of the additions does not hold. Nothing was changed.
    Changed,
    /// There is no such credential.
    CredentialAbsent,
    /// The flag was moved. Returns the versions that [`VersionSelection::Current`] now chooses.
    Moved(Vec<StoredVersion>),
    /// The credential has no such version. Nothing was changed.
    VersionAbsent,
}

/// The result of deleting one version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VersionDeleted {
    /// The credential has no such version, or does not exist.
    Absent,
    /// A precondition of the additions does not hold. Nothing was deleted.
    Changed,
    /// The version was deleted.
    Deleted,
    /// The credential has no other version. Nothing was deleted.
    IsOnly,
}

/// A database error.
#[derive(Debug, thiserror::Error)]
pub enum RepositoryError {
    /// Stored data breaks a rule of the schema. Names the column, never the data.
    #[error("the database is inconsistent: {0}")]
    Inconsistent(&'static str),
    /// The database is unreachable or timed out. A retry may succeed.
    #[error("the database is not available")]
    Unavailable(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// Any other error.
    #[error("the database refused a query")]
    Query(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// The signed credentials that a query returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignedTypes {
    /// Certificates with any signed version, and credentials of other types whose newest version is signed.
    All,
    /// Certificates with any signed version.
    Certificates,
}

/// The result of a query for signed credentials.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadSigned {
    /// The names of the signers.
    pub signers: Vec<LookupName>,
    /// The queried types.
    pub types: SignedTypes,
    /// The ids of the newest versions, in the order of the result.
    pub ids: Vec<Uuid>,
}

impl ReadSigned {
    /// Records a complete result.
    #[must_use]
    pub fn new(signers: Vec<LookupName>, types: SignedTypes, versions: &[StoredVersion]) -> Self {
        Self {
            signers,
            types,
            ids: versions.iter().map(|version| version.id).collect(),
        }
    }
}

/// The fields of a signed credential that matter for permissions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedName {
    /// Its name, in the casing of its first writer.
    pub name: CredentialName,
    /// Whether its newest version is a CA certificate.
    pub is_authority: bool,
}
