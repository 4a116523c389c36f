//! Credentials and their versions in a database.

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
        CredentialKey, Envelope, NewestSize, ReadSigned, ReadVersions, Receive, SignedName,
        SignedTypes, VersionSelection, VersionsSize,
    },
};

/// Credentials and their versions in a database.
#[async_trait]
pub trait CredentialRepository: Send + Sync {
    /// The name of the credential that the version with this id is one of, if there is one. Nothing else is read.
    ///
    /// # Errors
    /// When the database can't answer.
    async fn name_of_version(&self, id: Uuid) -> Result<Option<CredentialName>, RepositoryFailure>;

    /// Returns the name of the certificate credential with this id, or `None`. Reads only the name.
    ///
    /// # Errors
    /// When the database can't answer.
    async fn name_of_certificate(
        &self,
        credential_id: Uuid,
    ) -> Result<Option<CredentialName>, RepositoryFailure>;

    /// The name of a credential as it is stored, in the casing of its first writer, if there is such a credential. Nothing
    /// else is read.
    ///
    /// # Errors
    /// When the database can't answer.
    async fn stored_name(
        &self,
        name: &LookupName,
    ) -> Result<Option<CredentialName>, RepositoryFailure>;

    /// The version with this id, if there is one.
    ///
    /// # Errors
    /// When the database can't answer.
    async fn version_by_id(&self, id: Uuid) -> Result<Option<StoredVersion>, RepositoryFailure>;

    /// Returns the chosen versions of one credential, in the order of [`VersionSelection`]. Empty if there is no credential.
    ///
    /// # Errors
    /// When the database can't answer.
    async fn versions_by_name(
        &self,
        name: &LookupName,
        selection: VersionSelection,
    ) -> Result<Vec<StoredVersion>, RepositoryFailure>;

    /// The chosen versions of the credential with this id, in the order that [`VersionSelection`] says; empty when there is
    /// no such credential.
    ///
    /// # Errors
    /// When the database can't answer.
    async fn versions_by_credential(
        &self,
        credential_id: Uuid,
        selection: VersionSelection,
    ) -> Result<Vec<StoredVersion>, RepositoryFailure>;

    /// How large the newest versions of one credential are, at most so many of them. No value is read.
    ///
    /// # Errors
    /// When the database can't answer.
    async fn size_of_versions(
        &self,
        credential: CredentialKey<'_>,
        count_max: u32,
    ) -> Result<VersionsSize, RepositoryFailure>;

    /// How large the newest version of each of these credentials is that exists, in no order, by one query. No value is
    /// read.
    ///
    /// # Errors
    /// When the database can't answer.
    async fn newest_sizes_by_names(
        &self,
        names: &[LookupName],
    ) -> Result<Vec<NewestSize>, RepositoryFailure>;

    /// The newest version of each of these credentials that exists, in no order, by one query.
    ///
    /// # Errors
    /// When the database can't answer.
    async fn newest_by_names(
        &self,
        names: &[LookupName],
    ) -> Result<Vec<StoredVersion>, RepositoryFailure>;

    /// The newest version of each credential that one of these credentials signed, at most so many, in the order in which
    /// the credentials were made, by one query.
    ///
    /// # Errors
    /// When the database can't answer.
    async fn newest_signed_by(
        &self,
        signers: &[LookupName],
        types: SignedTypes,
        count_max: u32,
    ) -> Result<Vec<StoredVersion>, RepositoryFailure>;

    /// As [`CredentialRepository::newest_signed_by`], and of each version only what it takes to ask for permission.
    ///
    /// # Errors
    /// When the database can't answer.
    async fn names_signed_by(
        &self,
        signers: &[LookupName],
        types: SignedTypes,
        count_max: u32,
    ) -> Result<Vec<SignedName>, RepositoryFailure>;

    /// Finds the credentials that a search asks for, newest first, until the receiver breaks off.
    ///
    /// # Errors
    /// When the database can't answer.
    async fn find(
        &self,
        find: &Find,
        receive: Receive<'_, FoundCredential>,
    ) -> Result<(), RepositoryFailure>;

    /// The credentials of these names of which this plugin made a version that counts, newest first, by one query.
    ///
    /// # Errors
    /// When the database can't answer.
    async fn generated_by(
        &self,
        digest: &PluginDigest,
        names: &FindNames,
    ) -> Result<Vec<GeneratedCredential>, RepositoryFailure>;

    /// The certificates of these names in whose chain in use a certificate expires at this time or before, the one that
    /// expires first before the others, by one query.
    ///
    /// # Errors
    /// When the database can't answer.
    async fn effective_expiries(
        &self,
        names: &FindNames,
        until: DateTime<Utc>,
    ) -> Result<Vec<EffectiveExpiry>, RepositoryFailure>;

    /// Finds all certificates, the one with the newest version first, by one query, until the receiver breaks off.
    ///
    /// # Errors
    /// When the database can't answer.
    async fn certificates(
        &self,
        receive: Receive<'_, ListedCertificate>,
    ) -> Result<(), RepositoryFailure>;

    /// The certificate of this name, if there is one.
    ///
    /// # Errors
    /// When the database can't answer.
    async fn certificate(
        &self,
        name: &LookupName,
    ) -> Result<Option<ListedCertificate>, RepositoryFailure>;

    /// How many certificates there are in each of the spans of time that these moments, which ascend, divide, by the end
    /// of the validity of the newest version: until the first, after it until the second, and so on; the last number is of
    /// those that expire after all of them.
    ///
    /// # Errors
    /// When the database can't answer.
    async fn certificates_by_expiry(
        &self,
        moments: [DateTime<Utc>; EXPIRY_MOMENTS],
    ) -> Result<[u64; EXPIRY_MOMENTS + 1], RepositoryFailure>;

    /// The names of the certificates of which any version was signed by this one, itself left out, each once, in no order.
    ///
    /// # Errors
    /// When the database can't answer.
    async fn certificates_signed_by(
        &self,
        signer: &LookupName,
    ) -> Result<Vec<CredentialName>, RepositoryFailure>;

    /// Returns the credentials of other types than certificate whose newest version was made with this issuer, by name.
    ///
    /// # Errors
    /// When the database can't answer.
    async fn issued_by(
        &self,
        signer: &LookupName,
    ) -> Result<Vec<IssuedCredential>, RepositoryFailure>;

    /// Adds a version, and the credential when it is its first, in one transaction that looks at the state once more, and
    /// first at what must still be read as it was.
    ///
    /// When it answers [`Appended::Written`], the version is on disk.
    ///
    /// # Errors
    /// When the database can't answer; then nothing was written, unless the answer to the commit was lost.
    async fn append(
        &self,
        version: NewVersion,
        condition: AppendCondition,
        unchanged: &[ReadVersions],
    ) -> Result<Appended, RepositoryFailure>;

    /// Adds versions, all of them or none, in one transaction.
    ///
    /// When it answers [`AllAppended::Written`], all of them are on disk.
    ///
    /// # Errors
    /// When the database can't answer; then nothing was written, unless the answer to the commit was lost.
    async fn append_all(&self, additions: Additions) -> Result<AllAppended, RepositoryFailure>;

    /// Moves the transitional flag of a credential to a version, or takes it away, and adds versions of others, in one
    /// transaction.
    ///
    /// # Errors
    /// When the database can't answer; then nothing was changed, unless the answer to the commit was lost.
    async fn move_transitional(
        &self,
        credential_id: Uuid,
        to: TransitionalVersion,
        additions: Additions,
    ) -> Result<TransitionalMoved, RepositoryFailure>;

    /// Deletes one version of a credential that has others, and adds versions of others, in one transaction.
    ///
    /// # Errors
    /// When the database can't answer; then nothing was deleted, unless the answer to the commit was lost.
    async fn delete_version(
        &self,
        credential_id: Uuid,
        version_id: Uuid,
        additions: Additions,
    ) -> Result<VersionDeleted, RepositoryFailure>;

    /// Deletes a credential with all its versions, and returns its id; none when there was none.
    ///
    /// # Errors
    /// When the database can't answer; then nothing was deleted, unless the answer to the commit was lost.
    async fn delete(&self, name: &LookupName) -> Result<Option<Uuid>, RepositoryFailure>;

    /// Asks the database for a sign of life. It writes nothing.
    ///
    /// # Errors
    /// When the database can't answer, and while it is known that it can't be written.
    async fn ping(&self) -> Result<(), RepositoryFailure>;
}

/// How many moments [`CredentialRepository::certificates_by_expiry`] takes.
pub const EXPIRY_MOMENTS: usize = 5;

/// Versions of several credentials that are added together, all of them or none, and what must still hold when they are.
#[derive(Clone, Debug, Default)]
pub struct Additions {
    /// The versions, in the order in which they are added, each with what must hold of its credential.
    pub versions: Vec<(NewVersion, AppendCondition)>,
    /// What must still be read as it was, before anything is changed.
    pub unchanged: Vec<ReadVersions>,
    /// What [`CredentialRepository::newest_signed_by`] must still answer, before anything is changed.
    pub signed: Vec<ReadSigned>,
}

/// A version that is to be added.
#[derive(Clone, Debug)]
pub struct NewVersion {
    /// Its id, to which its envelope is bound.
    pub id: Uuid,
    /// The credential's name; when the credential exists already, its own casing is kept.
    pub name: CredentialName,
    /// The credential's type.
    pub credential_type: CredentialType,
    /// When it was made.
    pub created_at: DateTime<Utc>,
    /// Whether it carries the transitional flag.
    pub is_transitional: bool,
    /// Whether the service made it.
    pub is_generated: Option<bool>,
    /// The facts of the certificate in its value; for another type, of the certificate that its issuer signed for it.
    pub certificate: Option<CertificateFacts>,
    /// The name of the credential whose certificate signed it.
    pub signed_by: Option<CredentialName>,
    /// The version that signed it, when another did and that is known.
    pub issuer: Option<IssuerVersion>,
    /// Which plugin made it.
    pub provenance: Option<PluginIdentity>,
    /// Value, parameters and metadata, encrypted.
    pub envelope: Envelope,
}

/// What must still hold when a version is added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AppendCondition {
    /// Nothing but the type.
    Always,
    /// The credential exists, and has still this id: it was not deleted, nor made anew under its name.
    CredentialIs(Uuid),
    /// The newest version of the credential, by sequence, is still this one; `None`: the credential has none.
    NewestIs(Option<Uuid>),
}

/// What came of adding a version.
#[derive(Clone, Debug)]
pub enum Appended {
    /// The condition does not hold any more; nothing was written.
    Changed,
    /// The credential exists with this casing of its name, and the version was sealed for another; nothing was written.
    NamedOtherwise(CredentialName),
    /// Something that was read is not any more as it was; nothing was written.
    Outdated,
    /// The version is transitional, and so is another one of the credential; nothing was written.
    TransitionalExists,
    /// The credential exists with this other type; nothing was written.
    TypeDiffers(CredentialType),
    /// It is written.
    Written(Box<StoredVersion>),
}

/// What came of adding versions of several credentials.
#[derive(Debug)]
pub enum AllAppended {
    /// Something is not any more as it was, and nothing was written. They are given back, in their order.
    Changed(Vec<NewVersion>),
    /// They are written, in their order.
    Written(Vec<StoredVersion>),
}

/// Which version of a credential is to carry the transitional flag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransitionalVersion {
    /// The one with this id.
    Id(Uuid),
    /// The newest one that has a certificate.
    Latest,
    /// None of them.
    None,
}

/// What came of moving the transitional flag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TransitionalMoved {
    /// Something that should be added does not fit any more; nothing was changed.
    Changed,
    /// There is no such credential.
    CredentialAbsent,
    /// The flag is where it was to be. These are the versions that [`VersionSelection::Current`] chooses now.
    Moved(Vec<StoredVersion>),
    /// The credential has no such version; nothing was changed.
    VersionAbsent,
}

/// What came of deleting one version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VersionDeleted {
    /// The credential has no such version, or does not exist.
    Absent,
    /// Something that should be added does not fit any more; nothing was deleted.
    Changed,
    /// It is deleted.
    Deleted,
    /// The credential has no other version; nothing was deleted.
    IsOnly,
}

/// Why a database did not answer.
#[derive(Debug, thiserror::Error)]
pub enum RepositoryFailure {
    /// What is stored breaks a rule that the schema should hold. Names the place, never the data.
    #[error("the database is inconsistent: {0}")]
    Inconsistent(&'static str),
    /// The database could not be reached, or did not answer in time. It may answer later.
    #[error("the database is not available")]
    Unavailable(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// Anything else.
    #[error("the database refused a query")]
    Query(#[source] Box<dyn std::error::Error + Send + Sync>),
}
