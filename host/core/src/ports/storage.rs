//! Stored credentials with their versions.

use std::ops::ControlFlow;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use uuid::Uuid;

use crate::{
    credential::{
        CredentialName, CredentialType, EffectiveExpiry, Find, FindNames, FoundCredential,
        GeneratedCredential, InputVersion, IssuedCredential, ListedCertificate, ListedCredential,
        LookupName, PluginDigest, StoredVersion, VersionAttributes,
    },
    permission::{Actor, Permission, PermissionPath},
    ports::{Envelope, RepositoryError},
};

/// Stored credentials and their versions.
///
/// If a method that writes fails, it has written nothing, unless the commit succeeded and its response was lost.
#[async_trait]
pub trait CredentialRepository: CredentialSearches + CertificateLists {
    /// Returns the name of the credential that the version with this id belongs to, or `None`. Reads only the name.
    async fn name_of_version(&self, id: Uuid) -> Result<Option<CredentialName>, RepositoryError>;

    /// Returns the name of the certificate credential with this id, or `None`. Reads only the name.
    async fn name_of_certificate(
        &self,
        credential_id: Uuid,
    ) -> Result<Option<CredentialName>, RepositoryError>;

    /// Returns the stored name of a credential, with the casing of its first version, or `None`. Reads only the name.
    async fn stored_name(
        &self,
        name: &LookupName,
    ) -> Result<Option<CredentialName>, RepositoryError>;

    /// Reads versions together with the permissions that control access to them, in one step: on one snapshot on the calling thread, or
    /// in one round trip to a database server. Reads the actor's permissions on the paths, passes them to `permits`, and reads the
    /// versions if that returns `true`.
    ///
    /// If no permission includes `read`, it reads only the credential's name. It reads no version of a credential whose
    /// stored name differs from the name in the request, even if only in casing. The duration therefore does not reveal
    /// whether a credential or a version exists.
    ///
    /// # Errors
    /// If the database query fails. A retry calls `permits` again.
    async fn read_permitted(
        &self,
        read: PermittedRead<'_>,
        permits: &mut (dyn FnMut(Vec<Permission>) -> bool + Send),
    ) -> Result<PermittedVersions, RepositoryError>;

    /// Returns the version with this id, or `None`.
    async fn version_by_id(&self, id: Uuid) -> Result<Option<StoredVersion>, RepositoryError>;

    /// Returns the chosen versions of one credential, in the order of [`VersionSelection`]. Empty if there is no credential.
    async fn versions_of(
        &self,
        credential: CredentialKey<'_>,
        selection: VersionSelection,
    ) -> Result<Vec<StoredVersion>, RepositoryError>;

    /// Returns the size of the latest versions of a credential, at most `count_max`. Reads no value.
    async fn size_of_versions(
        &self,
        actor: &Actor,
        credential: CredentialKey<'_>,
        count_max: u32,
    ) -> Result<VersionsSize, RepositoryError>;

    /// Returns the size of the latest version of each of these credentials that exists, in no particular order. Reads no value.
    async fn newest_sizes_by_names(
        &self,
        actor: &Actor,
        names: &[LookupName],
    ) -> Result<Vec<NewestSize>, RepositoryError>;

    /// Returns the latest version of each of these credentials that exists, in no particular order. Reads no version of a
    /// credential whose stored name has another casing.
    async fn newest_by_names(
        &self,
        actor: &Actor,
        names: &[LookupName],
    ) -> Result<Vec<StoredVersion>, RepositoryError>;

    /// Returns the latest version of each credential that one of these credentials signed, at most `count_max`, in the
    /// order in which the credentials were created, with one query. Certificates count with any signed version, credentials
    /// of other types only with their latest version.
    async fn newest_signed_by(
        &self,
        signers: &[LookupName],
        types: SignedTypes,
        count_max: u32,
    ) -> Result<Vec<StoredVersion>, RepositoryError>;

    /// Like [`CredentialRepository::newest_signed_by`], but returns only the fields that matter for permissions.
    async fn names_signed_by(
        &self,
        actor: &Actor,
        signers: &[LookupName],
        types: SignedTypes,
        count_max: u32,
    ) -> Result<Vec<SignedName>, RepositoryError>;

    /// Adds a version, and the credential if it is its first version, in one transaction. The transaction first checks that
    /// the `unchanged` versions are unchanged, then the condition.
    ///
    /// If it returns [`Appended::Written`], the version is on disk.
    async fn append(
        &self,
        version: NewVersion,
        condition: AppendCondition,
        unchanged: &[ReadVersions],
    ) -> Result<Appended, RepositoryError>;

    /// Adds versions, all of them or none, in one transaction.
    ///
    /// If it returns [`AllAppended::Written`], all of them are on disk.
    async fn append_all(&self, additions: Additions) -> Result<AllAppended, RepositoryError>;

    /// Changes a version of a credential, and adds versions of other credentials, in one transaction.
    async fn change_version(
        &self,
        credential_id: Uuid,
        change: VersionChange,
        additions: Additions,
    ) -> Result<VersionChanged, RepositoryError>;

    /// Deletes the credential whose stored name has this casing if it has at most
    /// [`BATCH_VERSIONS_MAX`](crate::retention::BATCH_VERSIONS_MAX) versions. Otherwise, deletes at most that many versions, the
    /// oldest first.
    async fn delete(&self, name: &CredentialName) -> Result<Deleted, RepositoryError>;

    /// Checks the health of the database without writing.
    ///
    /// # Errors
    /// If the query fails, or the database is known to be read-only.
    async fn ping(&self) -> Result<(), RepositoryError>;
}

/// Searches for stored credentials. The searches of one actor don't delay the searches of other actors.
#[async_trait]
pub trait CredentialSearches: Send + Sync {
    /// Finds the credentials of a search, newest first, until the receiver stops.
    async fn find(
        &self,
        actor: &Actor,
        find: &Find,
        receive: Receive<'_, FoundCredential>,
    ) -> Result<(), RepositoryError>;

    /// Returns the credentials whose names in lower case are at least `from` and less than `before`, at most `count_max`, in
    /// the order of these names. Credentials without an active version are omitted, as in a search.
    async fn list(
        &self,
        actor: &Actor,
        from: &str,
        before: &str,
        count_max: u32,
    ) -> Result<Vec<ListedCredential>, RepositoryError>;

    /// Finds the credentials of these names whose latest, active or transitional version was generated by this plugin,
    /// newest first, with one query, until the receiver stops.
    async fn generated_by(
        &self,
        actor: &Actor,
        digest: &PluginDigest,
        names: &FindNames,
        receive: Receive<'_, GeneratedCredential>,
    ) -> Result<(), RepositoryError>;

    /// Finds the credentials of these names whose latest version was derived from this input, newest first, with one query, until
    /// the receiver stops. The input need not exist any more.
    async fn derived_from(
        &self,
        actor: &Actor,
        input: &LookupName,
        names: &FindNames,
        receive: Receive<'_, FoundCredential>,
    ) -> Result<(), RepositoryError>;

    /// Counts at most `count_max` of the credentials that a permission on this path covers, by type. Types without such credentials
    /// are absent. Credentials without an active version are omitted, as in a search.
    async fn count_by_type(
        &self,
        actor: &Actor,
        path: &PermissionPath,
        count_max: u64,
    ) -> Result<Vec<(CredentialType, u64)>, RepositoryError>;
}

/// Lists of stored certificates.
#[async_trait]
pub trait CertificateLists: Send + Sync {
    /// Finds all certificates, by their latest version, newest first, with one query, until the receiver stops. A credential of
    /// another type has a certificate if its latest version has the facts of a certificate, or a signer. The receiver gets a
    /// certificate once for each of its versions, latest version first, each time with this version only.
    async fn certificates(
        &self,
        actor: &Actor,
        types: SignedTypes,
        receive: Receive<'_, ListedCertificate>,
    ) -> Result<(), RepositoryError>;

    /// Finds the certificates whose latest version is a CA, by this version, newest first, with one query, until the
    /// receiver stops. It gets each version separately, as in [`CertificateLists::certificates`].
    async fn authorities(
        &self,
        actor: &Actor,
        receive: Receive<'_, ListedCertificate>,
    ) -> Result<(), RepositoryError>;

    /// Finds the certificate of this name, until the receiver stops. It gets each version separately, as in
    /// [`CertificateLists::certificates`].
    async fn certificate(
        &self,
        actor: &Actor,
        name: &LookupName,
        types: SignedTypes,
        receive: Receive<'_, ListedCertificate>,
    ) -> Result<(), RepositoryError>;

    /// Counts the credentials of each type by the time at which their latest version is due
    /// ([`VersionAttributes::due_at`](crate::credential::VersionAttributes::due_at)), in the ranges between these ascending
    /// times. Types without such credentials are absent.
    async fn credentials_by_expiry(
        &self,
        moments: [DateTime<Utc>; EXPIRY_MOMENTS],
    ) -> Result<Vec<ExpiryCounts>, RepositoryError>;

    /// Returns the names of the certificates with any version signed by this certificate, except itself, each once, in no
    /// particular order.
    async fn certificates_signed_by(
        &self,
        actor: &Actor,
        signer: &LookupName,
    ) -> Result<Vec<CredentialName>, RepositoryError>;

    /// Returns the credentials of types other than certificate whose latest version was generated with this issuer, by name.
    async fn issued_by(
        &self,
        actor: &Actor,
        signer: &LookupName,
    ) -> Result<Vec<IssuedCredential>, RepositoryError>;

    /// Finds the certificates of these names whose active version has a chain in which a certificate expires at or before
    /// this time, ordered by expiry, with one query, until the receiver stops.
    async fn effective_expiries(
        &self,
        actor: &Actor,
        names: &FindNames,
        until: DateTime<Utc>,
        receive: Receive<'_, EffectiveExpiry>,
    ) -> Result<(), RepositoryError>;

    /// Finds the CAs with a transitional version, in the order in which the credentials were created, with one query, until the
    /// receiver stops.
    async fn transitional_authorities(
        &self,
        actor: &Actor,
        receive: Receive<'_, CredentialName>,
    ) -> Result<(), RepositoryError>;
}

/// The number of elements of `moments` in [`CertificateLists::credentials_by_expiry`].
pub const EXPIRY_MOMENTS: usize = 5;

/// The numbers of credentials of one type, all with a certificate or all without.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpiryCounts {
    /// The type.
    pub credential_type: CredentialType,
    /// Whether their latest versions have certificates.
    pub has_certificate: bool,
    /// The numbers by time: each moment is the inclusive upper bound of a range, and the last range has no upper bound.
    pub counts: [u64; EXPIRY_MOMENTS + 1],
}

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
    /// Its unencrypted attributes.
    pub attributes: VersionAttributes,
    /// The versions from which its value was derived. The envelope contains them, too.
    pub inputs: Vec<InputVersion>,
    /// Its content, encrypted.
    pub envelope: Envelope,
}

/// A condition for adding a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AppendCondition {
    /// Only the type must match.
    Always,
    /// The credential exists and has this id: it was neither deleted nor recreated.
    CredentialIs(Uuid),
    /// The latest version of the credential, by sequence, has this id. `None`: the credential has no versions.
    NewestIs(Option<Uuid>),
}

/// The result of adding a version.
#[derive(Clone, Debug)]
pub enum Appended {
    /// The condition does not hold. Nothing was written.
    Changed,
    /// The credential exists with this casing of its name, and the version was encrypted for another. Nothing was written.
    CasingDiffers(CredentialName),
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

/// A change of one version of a credential.
#[derive(Clone, Copy, Debug)]
pub enum VersionChange {
    /// Deletes the version with this id. The credential must have further versions.
    Delete(Uuid),
    /// Moves the transitional flag to a version, or clears it.
    Move(TransitionalVersion),
}

/// The version of a credential to get the transitional flag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransitionalVersion {
    /// The version with this id.
    Id(Uuid),
    /// The latest version with a certificate.
    Latest,
    /// No version.
    None,
}

/// The result of deleting a credential.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deleted {
    /// The credential with this id was deleted.
    Credential(Uuid),
    /// The credential may have more versions.
    OldestVersions,
    /// There is no such credential.
    Nothing,
}

/// The result of changing a version. Except for [`VersionChanged::Written`], nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VersionChanged {
    /// There is no such credential.
    CredentialAbsent,
    /// The credential has no other version than the one to delete.
    IsOnly,
    /// A precondition of the additions does not hold.
    Outdated,
    /// The credential has no such version.
    VersionAbsent,
    /// The version was changed. Returns the versions that [`VersionSelection::Current`] now chooses.
    Written(Vec<StoredVersion>),
}

/// The types of the signed credentials that a query returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignedTypes {
    /// All types.
    All,
    /// Only the type certificate.
    Certificates,
}

/// The result of a query for signed credentials.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadSigned {
    /// The names of the signers.
    pub signers: Vec<LookupName>,
    /// The queried types.
    pub types: SignedTypes,
    /// The ids of the latest versions, in the order of the result, and whether each is transitional.
    pub versions: Vec<(Uuid, bool)>,
}

impl ReadSigned {
    /// Records a complete result.
    pub fn new(signers: Vec<LookupName>, types: SignedTypes, versions: &[StoredVersion]) -> Self {
        Self {
            signers,
            types,
            versions: versions
                .iter()
                .map(|version| (version.id, version.attributes.is_transitional))
                .collect(),
        }
    }
}

/// The fields of a signed credential that matter for permissions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedName {
    /// Its name, with the casing of its first version.
    pub name: CredentialName,
    /// Whether its latest version is a CA certificate.
    pub is_authority: bool,
}

/// The versions to read, and the permissions that control access to them.
#[derive(Clone, Copy, Debug)]
pub struct PermittedRead<'a> {
    /// The calling actor.
    pub actor: &'a Actor,
    /// The paths that cover the name, as [`PermissionPath::covering`] returns them.
    pub paths: &'a [PermissionPath],
    /// The credential's name in this casing.
    pub name: &'a LookupName,
    /// The versions. They must be few: SQLite reads them on the calling thread, and no memory is reserved for them.
    pub versions: VersionKey,
}

/// Identifies versions of one credential.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VersionKey {
    /// The version with this id.
    Id(Uuid),
    /// A selection of versions.
    Selected(VersionSelection),
}

/// The result of a permitted read.
#[derive(Clone, Debug, Default)]
pub struct PermittedVersions {
    /// The versions, in the order of [`VersionSelection`].
    pub versions: Vec<StoredVersion>,
    /// The stored name of the credential, if it exists and no versions were read.
    pub stored_name: Option<CredentialName>,
}

/// Receives the rows of a query one by one and can stop the query, so that memory use stays bounded.
pub type Receive<'a, T> = &'a mut (dyn FnMut(T) -> ControlFlow<()> + Send);

/// The key of a credential.
#[derive(Clone, Copy, Debug)]
pub enum CredentialKey<'a> {
    /// By its id.
    Id(Uuid),
    /// By its name.
    Name(&'a LookupName),
}

/// The size of versions of one credential.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VersionsSize {
    /// The number of versions.
    pub count: u32,
    /// The total size of their ciphertexts, in bytes.
    pub ciphertext_bytes: usize,
}

/// The size of the latest version of a credential.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewestSize {
    /// The credential's name, with the casing of its first version.
    pub name: CredentialName,
    /// The size of its ciphertext, in bytes.
    pub ciphertext_bytes: usize,
}

/// A selection of versions of a credential.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VersionSelection {
    /// The latest version that is not transitional, then the transitional version; either may be absent.
    Current,
    /// At most this many, newest first.
    Newest(u32),
}

impl VersionSelection {
    /// All versions, newest first.
    pub const ALL: Self = Self::Newest(u32::MAX);
}

/// The record of a read of one credential.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadVersions {
    /// The credential's name.
    pub name: LookupName,
    /// The selection.
    pub selection: VersionSelection,
    /// The ids of the existing versions, in the order of the selection, and whether each is transitional.
    pub versions: Vec<(Uuid, bool)>,
}
