//! The errors of use cases.

use crate::{
    credential::{CredentialName, CredentialType, MetadataError, NameError},
    permission::{ActorError, PathError, UnknownOperationError},
    ports::{CertificateError, PluginCallError, RecognitionError, RepositoryError, SealError},
    response_memory::NoResponseMemory,
};

/// An error of a use case. `Display` is safe to show to the caller: it never contains a value or an internal cause, which is
/// only available from `source`.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The actor of a permission breaks a rule.
    #[error(transparent)]
    ActorMalformed(#[from] ActorError),
    /// The certificate to set breaks a rule.
    #[error(transparent)]
    CertificateRefused(#[from] CertificateError),
    /// Concurrent requests changed the credential in every attempt.
    #[error("other requests changed the credential at the same time; try again")]
    Contended,
    /// The plugin generated an invalid certificate.
    #[error("the generated certificate is invalid")]
    GeneratedCertificateRefused(#[source] CertificateError),
    /// The named issuer does not exist, is not a certificate, or the caller may not read it.
    #[error("the certificate authority does not exist or the caller may not read it")]
    IssuerNotFound,
    /// With a bulk regeneration that keeps going, the CA that would sign the credential failed.
    #[error("its certificate authority {0} was not regenerated")]
    IssuerNotRegenerated(CredentialName),
    /// The named issuer can't sign.
    #[error("the certificate authority can't sign: its {0}")]
    IssuerUnusable(CertificateError),
    /// The metadata is too long.
    #[error(transparent)]
    MetadataTooLong(#[from] MetadataError),
    /// The name breaks a rule.
    #[error(transparent)]
    NameMalformed(#[from] NameError),
    /// A bulk regeneration failed for one credential, so no credential was regenerated.
    #[error("no credential was regenerated, because regenerating {name} failed")]
    NotAllRegenerated {
        /// The credential.
        name: CredentialName,
        /// The error of this credential.
        #[source]
        reason: Box<Failure>,
    },
    /// Other responses currently use too much memory.
    #[error("the server has too little free memory for the response; try again later")]
    NoResponseMemory,
    /// Other responses to the same actor currently use too much memory.
    #[error(
        "the responses to this caller exceed its memory limit; finish reading earlier responses first"
    )]
    NoResponseMemoryOfActor,
    /// There is no resolver configured.
    #[error("this server has no resolver plugin configured and can't interpolate")]
    NoResolver,
    /// There is no such credential.
    #[error("the credential does not exist or the caller may not access it")]
    NotFound,
    /// The credential can't be regenerated, for this reason.
    #[error("the credential can't be regenerated: {0}")]
    NotRegeneratable(String),
    /// The version to delete is the only version of its certificate.
    #[error("the only version of a certificate can't be deleted; delete the credential instead")]
    OnlyVersion,
    /// No operation has this name.
    #[error(transparent)]
    OperationUnknown(#[from] UnknownOperationError),
    /// The request names no operations for the permission.
    #[error("a permission needs at least one operation")]
    OperationsMissing,
    /// The caller is the actor of the permission to add, change or delete.
    #[error("an actor can't add, change or delete its own permissions")]
    OwnPermission,
    /// A request to generate a certificate has no parameters.
    #[error("parameters are required to generate a credential of type {0}")]
    ParametersMissing(CredentialType),
    /// The path of a permission breaks a rule.
    #[error(transparent)]
    PathMalformed(#[from] PathError),
    /// The actor already has a permission on the path, or its permissions already allow every operation to add.
    #[error("the actor already has this permission")]
    PermissionExists,
    /// The request changes the path or the actor of a permission.
    #[error(
        "the path and the actor of a permission can't be changed; add a permission and delete this one"
    )]
    PermissionFixed,
    /// There is no such permission.
    #[error("the permission does not exist or the caller may not access it")]
    PermissionNotFound,
    /// A bulk regeneration by plugin digest would use the same plugin again.
    #[error(
        "the plugin with this digest still generates credentials of type {0}; configure another plugin first"
    )]
    PluginInUse(CredentialType),
    /// A plugin refused or failed.
    #[error(transparent)]
    Plugin(#[from] PluginCallError),
    /// A reference names a field that the credential's value does not have.
    #[error("the value of the credential {name} has no field {field}")]
    ReferencedFieldMissing {
        /// The credential, as in the reference.
        name: String,
        /// The field, as in the reference.
        field: String,
    },
    /// A reference inside a string names null, an array or an object.
    #[error(
        "the credential {0} can't be inserted into a string: only strings, numbers and booleans can"
    )]
    ReferenceNotScalar(String),
    /// A reference names a credential that is not of type json.
    #[error("the credential {0} is not of type json and can't be interpolated")]
    ReferenceNotJson(CredentialName),
    /// The values that a document refers to are too large in total.
    #[error("the referenced values are larger than {limit} in total")]
    ReferencesTooLarge {
        /// The limit, with its unit.
        limit: &'static str,
    },
    /// The response would be too large.
    #[error(
        "the response is too large: it may have at most {bytes_max} bytes; request fewer versions with versions=, or search below a longer path"
    )]
    ResponseTooLarge {
        /// The maximum size of a response, in bytes.
        bytes_max: usize,
    },
    /// The database failed.
    #[error("the storage failed")]
    Repository(#[from] RepositoryError),
    /// A stored value can't be decrypted, or a new value can't be encrypted.
    #[error(transparent)]
    Seal(#[from] SealError),
    /// A decrypted value can't be parsed.
    #[error("the stored value is malformed")]
    StoredValueMalformed,
    /// The request sets the transitional flag on a second version of a credential.
    #[error("the certificate already has a transitional version; only one is allowed")]
    TransitionalExists,
    /// The maximum number of bulk regenerations is in progress.
    #[error("too many bulk regenerations are in progress; try again later")]
    TooManyBulkRegenerations,
    /// A plugin generated more credentials than one bulk regeneration may write.
    #[error(
        "the plugin generated more than {limit} below this path, the limit of one request; send separate requests for longer paths"
    )]
    TooManyGenerated {
        /// The limit, with its unit.
        limit: &'static str,
    },
    /// A CA has signed more certificates than one request may write.
    #[error(
        "the certificate authority and the authorities below it have signed more than {limit}, the limit of one request"
    )]
    TooManySigned {
        /// The limit, with its unit.
        limit: &'static str,
    },
    /// The transitional flag can't be moved to the requested version, for this reason.
    #[error("the certificate's transitional version can't be changed: {0}")]
    TransitionalVersionRefused(&'static str),
    /// The credential exists with another type.
    #[error("the credential exists with type {0}; the type of a credential can't be changed")]
    TypeDiffers(CredentialType),
    /// Values of this type can only be set.
    #[error("credentials of type {0} can't be generated")]
    TypeNotGeneratable(CredentialType),
    /// No such type is configured.
    #[error("unknown type; it must be one of {}", .known.join(", "))]
    TypeUnknown {
        /// The configured types.
        known: Vec<String>,
    },
    /// The value to set has a field that its type does not have.
    #[error("the value has the unknown field {0}")]
    ValueFieldUnknown(String),
    /// The value to set breaks a rule.
    #[error("{0}")]
    ValueRefused(String),
    /// The value, or a part of it, exceeds a limit.
    #[error("{what} may have at most {limit}")]
    ValueTooLarge {
        /// The value, or its part that is too large.
        what: &'static str,
        /// The limit, with its unit.
        limit: &'static str,
    },
    /// The caller may not write the credential, whether or not it exists.
    #[error("the caller may not write this credential")]
    WriteNotPermitted,
}

impl From<NoResponseMemory> for Failure {
    fn from(refused: NoResponseMemory) -> Self {
        match refused {
            NoResponseMemory::TooLarge(bytes_max) => Self::ResponseTooLarge { bytes_max },
            NoResponseMemory::ActorsTaken => Self::NoResponseMemoryOfActor,
            NoResponseMemory::AllTaken => Self::NoResponseMemory,
        }
    }
}

impl From<RecognitionError> for Failure {
    fn from(failure: RecognitionError) -> Self {
        match failure {
            RecognitionError::Repository(failure) => failure.into(),
            RecognitionError::Seal(failure) => failure.into(),
        }
    }
}
