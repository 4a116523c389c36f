//! What the domain needs from outside, one trait for each need.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use uuid::Uuid;

use crate::{
    Secret,
    certificate::{CertificateFacts, IssuanceRules},
    credential::{
        CredentialName, CredentialType, Find, FoundCredential, LookupName, Parameters,
        PluginIdentity, StoredVersion,
    },
};

/// The time, as a parameter.
pub trait Clock: Send + Sync {
    /// The present moment.
    fn now(&self) -> DateTime<Utc>;
}

/// Fresh identifiers, as a parameter.
pub trait Identifiers: Send + Sync {
    /// A new random (version 4) UUID.
    fn fresh(&self) -> Uuid;
}

// ---- Storage ----------------------------------------------------------------------------------------------------------

/// Credentials and their versions in a database.
#[async_trait]
pub trait CredentialRepository: Send + Sync {
    /// The version with this id, if there is one.
    ///
    /// # Errors
    /// When the database can't answer.
    async fn version_by_id(&self, id: Uuid) -> Result<Option<StoredVersion>, RepositoryFailure>;

    /// The chosen versions of one credential, in the order that [`VersionSelection`] says; empty when there is no such
    /// credential.
    ///
    /// # Errors
    /// When the database can't answer.
    async fn versions_by_name(
        &self,
        name: &LookupName,
        selection: VersionSelection,
    ) -> Result<Vec<StoredVersion>, RepositoryFailure>;

    /// The newest version of each of these credentials that exists, in no order, by one query.
    ///
    /// # Errors
    /// When the database can't answer.
    async fn newest_by_names(
        &self,
        names: &[LookupName],
    ) -> Result<Vec<StoredVersion>, RepositoryFailure>;

    /// The credentials that a search asks for, newest first.
    ///
    /// # Errors
    /// When the database can't answer.
    async fn find(&self, find: &Find) -> Result<Vec<FoundCredential>, RepositoryFailure>;

    /// Adds a version, and the credential when it is its first, in one transaction that looks at the state once more.
    ///
    /// When it answers [`Appended::Written`], the version is on disk.
    ///
    /// # Errors
    /// When the database can't answer; then nothing was written.
    async fn append(
        &self,
        version: NewVersion,
        condition: AppendCondition,
    ) -> Result<Appended, RepositoryFailure>;

    /// Deletes a credential with all its versions; false when there was none.
    ///
    /// # Errors
    /// When the database can't answer; then nothing was deleted.
    async fn delete(&self, name: &LookupName) -> Result<bool, RepositoryFailure>;

    /// Asks the database for a sign of life.
    ///
    /// # Errors
    /// When the database can't answer.
    async fn ping(&self) -> Result<(), RepositoryFailure>;
}

/// Which versions of a credential to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VersionSelection {
    /// All, newest first.
    All,
    /// The newest one that is not transitional, then the transitional one; either may be absent.
    Current,
    /// At most this many, newest first.
    Newest(u32),
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
    /// What the certificate says of itself, when it has one.
    pub certificate: Option<CertificateFacts>,
    /// The name of the credential whose certificate signed it.
    pub signed_by: Option<CredentialName>,
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
    /// The newest version of the credential, by sequence, is still this one; `None`: the credential has none.
    NewestIs(Option<Uuid>),
}

/// What came of adding a version.
#[derive(Clone, Debug)]
pub enum Appended {
    /// The condition does not hold any more; nothing was written.
    Changed,
    /// The credential exists with this other type; nothing was written.
    TypeDiffers(CredentialType),
    /// It is written.
    Written(Box<StoredVersion>),
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

// ---- Encryption -------------------------------------------------------------------------------------------------------

/// Encryption of what is stored, bound to its place.
pub trait Sealer: Send + Sync {
    /// Encrypts with the active key. The result opens only at the same place.
    ///
    /// # Errors
    /// When the cipher fails.
    fn seal(&self, place: SealedPlace<'_>, plaintext: &Secret) -> Result<Envelope, SealFailure>;

    /// Decrypts.
    ///
    /// # Errors
    /// When the key is not configured, or the envelope was not sealed for this place, or was changed.
    fn open(&self, place: SealedPlace<'_>, envelope: &Envelope) -> Result<Secret, SealFailure>;
}

/// Where sealed bytes belong.
#[derive(Clone, Copy, Debug)]
pub struct SealedPlace<'a> {
    /// The version.
    pub version_id: Uuid,
    /// The name of its credential.
    pub name: &'a LookupName,
}

/// Encrypted bytes with what it takes to open them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Envelope {
    /// The key that sealed them.
    pub key_id: Uuid,
    /// The nonce.
    pub nonce: Vec<u8>,
    /// The ciphertext with its tag.
    pub ciphertext: Vec<u8>,
}

/// Why something could not be sealed or opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SealFailure {
    /// The cipher refused; the reason is not told, so that nothing leaks.
    #[error(
        "the stored value could not be decrypted: it was changed, or does not belong where it stands"
    )]
    NotAuthentic,
    /// No configured key has this id.
    #[error("the encryption key {0} is not configured")]
    KeyUnknown(Uuid),
    /// Encryption failed.
    #[error("the value could not be encrypted")]
    SealingFailed,
}

// ---- Plugins ----------------------------------------------------------------------------------------------------------

/// The configured generators, by the type that each makes.
pub trait Generators: Send + Sync {
    /// The generator of this type, if one is configured.
    fn generator(&self, credential_type: &CredentialType) -> Option<Arc<dyn Generator>>;

    /// The types that have a generator, in alphabetical order.
    fn credential_types(&self) -> Vec<CredentialType>;
}

/// One configured generator.
///
/// Each method that calls the guest does so in a fresh instance on the plugins' own pool, and ends within the plugin's
/// deadline.
#[async_trait]
pub trait Generator: Send + Sync {
    /// Which plugin this is.
    fn identity(&self) -> &PluginIdentity;

    /// The parameter that names the issuer's credential, if the plugin has one.
    fn issuer_parameter(&self) -> Option<&str>;

    /// The canonical form of what a caller sent.
    ///
    /// # Errors
    /// When the parameters break a rule, or the guest fails.
    async fn normalize(&self, parameters: &Parameters) -> Result<Parameters, PluginFailure>;

    /// Makes a value; JSON text that keeps the plugin's value schema.
    ///
    /// # Errors
    /// When the guest refuses or fails, or its output is not of the declared shape.
    async fn generate(
        &self,
        parameters: &Parameters,
        now: DateTime<Utc>,
        issuer: Option<Arc<dyn CertificateIssuer>>,
    ) -> Result<Secret, PluginFailure>;

    /// Checks and completes a value that a caller sets, JSON text; the result keeps the plugin's value schema.
    ///
    /// # Errors
    /// When the value breaks a rule, or the guest fails.
    async fn accept(&self, value: &Secret) -> Result<Secret, PluginFailure>;

    /// The parameters with which a stored value can be made anew: by the guest's `recover` where it has one, else those
    /// that were stored. `None` when there are none.
    ///
    /// `value` is the whole stored value; the secret members are withheld from the guest here.
    ///
    /// # Errors
    /// [`PluginFailure::ValueRefused`] when the guest says that it can't be regenerated, or the guest fails.
    async fn recover(
        &self,
        parameters: Option<&Parameters>,
        value: &Secret,
    ) -> Result<Option<Recovered>, PluginFailure>;
}

/// Parameters found for a stored value.
#[derive(Clone, Debug)]
pub struct Recovered {
    /// The canonical parameters.
    pub parameters: Parameters,
    /// Whether the stored value determined them all.
    pub is_complete: bool,
}

/// The configured resolver, which finds references in documents.
#[async_trait]
pub trait Resolver: Send + Sync {
    /// The references in a JSON document, in its order.
    ///
    /// # Errors
    /// When the guest refuses the document or fails.
    async fn find_references(&self, document: &str) -> Result<Vec<Reference>, PluginFailure>;
}

/// One place in a document and the credential that belongs there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    /// A JSON Pointer (RFC 6901) to the place.
    pub pointer: String,
    /// The credential's name, as the document has it.
    pub name: String,
}

/// Why a plugin gave no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PluginFailure {
    /// The resolver can't read the document; its words are for the caller.
    #[error("the document was refused: {0}")]
    DocumentRefused(String),
    /// The guest itself failed. Names the plugin and what happened, never its data.
    #[error("the plugin {plugin} {fault}")]
    Faulted {
        /// The plugin's configured name.
        plugin: String,
        /// What happened.
        fault: PluginFault,
    },
    /// The parameters break a rule of the plugin; its words are for the caller.
    #[error("the parameters were refused: {0}")]
    ParametersRefused(Violation),
    /// The queue for guest calls is full.
    #[error("too many plugin calls are waiting")]
    QueueFull {
        /// When to try again.
        retry_after: Duration,
    },
    /// The value has a member that the plugin does not know.
    #[error("the value has an unknown member")]
    ValueMemberUnknown(String),
    /// The value breaks a rule of the plugin; its words are for the caller.
    #[error("the value was refused: {0}")]
    ValueRefused(Violation),
}

/// What happened to a guest. The words complete the sentence "the plugin password …".
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PluginFault {
    /// What it was to be given exceeds its input limit.
    #[error("was given more than its input limit")]
    InputTooLarge,
    /// It asked for more memory than its ceiling.
    #[error("asked for more memory than its limit")]
    MemoryExceeded,
    /// It says that its settings are wrong.
    #[error("says that its settings are wrong")]
    Misconfigured,
    /// Its output is not JSON, or not of the shape that it declared.
    #[error("returned something of another shape than it declared")]
    OutputMalformed,
    /// Its output exceeds its limit.
    #[error("returned more than its output limit")]
    OutputTooLarge,
    /// It reported a failure of its own.
    #[error("reported a failure of its own")]
    Reported,
    /// It recursed too deeply.
    #[error("used up its stack")]
    StackExhausted,
    /// It did not end within its deadline.
    #[error("did not end within its deadline")]
    TimedOut,
    /// It trapped: it panicked, or did what WebAssembly forbids.
    #[error("trapped")]
    Trapped,
}

/// One rule that is not kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The parameter or the member that breaks it, if it is a single one.
    pub member: Option<String>,
    /// The rule, in words for the caller.
    pub rule: String,
}

impl std::fmt::Display for Violation {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.member {
            Some(member) => write!(formatter, "{member}: {}", self.rule),
            None => formatter.write_str(&self.rule),
        }
    }
}

// ---- Certificates -----------------------------------------------------------------------------------------------------

/// X.509: reading certificates, checking them, and lending issuers.
pub trait Certificates: Send + Sync {
    /// Reads the first certificate of a PEM text.
    ///
    /// # Errors
    /// When it is not a certificate.
    fn facts(&self, certificate: &str) -> Result<CertificateFacts, CertificateRefused>;

    /// Checks what a caller sets: that the certificate parses, that `ca` is an authority and signed it, and that the
    /// private key is its own. Absent members are not checked.
    ///
    /// # Errors
    /// Which member breaks which rule.
    fn check_members(
        &self,
        members: CertificateMembers<'_>,
    ) -> Result<Option<CertificateFacts>, CertificateRefused>;

    /// Checks a generated certificate: that it parses, that its private key is its own, and that `ca` is the issuer's
    /// certificate, or the certificate itself when there is no issuer.
    ///
    /// # Errors
    /// Which member breaks which rule.
    fn check_generated(
        &self,
        members: CertificateMembers<'_>,
        issuer: Option<&dyn CertificateIssuer>,
    ) -> Result<CertificateFacts, CertificateRefused>;

    /// An issuer for one call, out of an authority's certificate and private key.
    ///
    /// # Errors
    /// When the certificate is no authority's, or the key is not its own or can't sign.
    fn issuer(
        &self,
        certificate: &str,
        private_key: &Secret,
        rules: IssuanceRules,
    ) -> Result<Arc<dyn CertificateIssuer>, CertificateRefused>;

    /// Whether two PEM texts hold the same first certificate; false when either holds none.
    fn is_same_certificate(&self, one: &str, other: &str) -> bool;
}

/// The members of a certificate's value, as far as they are there.
#[derive(Clone, Copy, Default)]
pub struct CertificateMembers<'a> {
    /// The signing authority's certificate, PEM.
    pub ca: Option<&'a str>,
    /// The certificate, PEM.
    pub certificate: Option<&'a str>,
    /// Its private key, PEM.
    pub private_key: Option<&'a Secret>,
    /// Whether `ca` came from a stored credential that the caller named as `ca_name`; only the words of a refusal differ.
    pub ca_is_stored: bool,
}

/// A rule that a certificate breaks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{member} {rule}")]
pub struct CertificateRefused {
    /// The member that breaks it.
    pub member: &'static str,
    /// The rule, so that "member rule" reads as a sentence for an operator.
    pub rule: &'static str,
}

/// A certificate authority that signs for one call. Its private key stays inside.
pub trait CertificateIssuer: Send + Sync {
    /// Its own certificate, DER.
    fn certificate(&self) -> &[u8];

    /// Its subject, DER, byte for byte as in its certificate.
    fn subject(&self) -> &[u8];

    /// The octets of its subject key identifier extension, if it has one.
    fn subject_key_identifier(&self) -> Option<&[u8]>;

    /// The algorithm it signs with: a DER `AlgorithmIdentifier`.
    fn signature_algorithm(&self) -> &[u8];

    /// Checks a DER `TBSCertificate` (RFC 5280) against the rules of this call and makes the certificate of it, DER.
    ///
    /// # Errors
    /// [`SigningRefused`] with the rule that the body breaks.
    fn sign_certificate(&self, tbs_certificate: &[u8]) -> Result<Vec<u8>, SigningRefused>;
}

/// A certificate body that an issuer does not sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the issuer refused to sign: {0}")]
pub struct SigningRefused(pub &'static str);
