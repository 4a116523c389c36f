//! Why a use case did not do what it was asked.

use crate::{
    credential::{CredentialName, CredentialType, MetadataTooLong, NameMalformed},
    permission::{ActorMalformed, OperationUnknown, PathMalformed},
    ports::{
        CertificateRefused, PluginFailure, RecognitionFailure, RepositoryFailure, SealFailure,
    },
    response_memory::NoResponseMemory,
};

/// Why a use case did not do what it was asked. `Display` is fit for the caller: it never holds a value, and never an
/// internal cause, which stays in `source`.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The actor of a permission breaks a rule.
    #[error(transparent)]
    ActorMalformed(#[from] ActorMalformed),
    /// A certificate that was set breaks a rule.
    #[error(transparent)]
    CertificateRefused(#[from] CertificateRefused),
    /// Other writers of the same name kept changing it.
    #[error("the credential was changed by others at the same moment; try again")]
    Contended,
    /// A generated certificate is not what it should be: the plugin's fault.
    #[error("the generated certificate is not valid")]
    GeneratedCertificateRefused(#[source] CertificateRefused),
    /// The named issuer is absent, unreadable, or no certificate.
    #[error("the certificate authority does not exist or the caller may not read it")]
    IssuerNotFound,
    /// The named issuer can't sign.
    #[error("the certificate authority can't sign: its {0}")]
    IssuerUnusable(CertificateRefused),
    /// The metadata is too long.
    #[error(transparent)]
    MetadataTooLong(#[from] MetadataTooLong),
    /// The name breaks a rule.
    #[error(transparent)]
    NameMalformed(#[from] NameMalformed),
    /// One of many credentials that are regenerated together could not be, for this reason; so none was.
    #[error("nothing was regenerated, because {name} could not be")]
    NotAllRegenerated {
        /// The credential.
        name: CredentialName,
        /// Why it could not be.
        #[source]
        reason: Box<Failure>,
    },
    /// Other responses take too much memory at present.
    #[error("the response needs more memory than is free at present; try again later")]
    NoResponseMemory,
    /// Other responses to the same actor take too much memory at present.
    #[error(
        "the responses to this caller take more memory than allowed; finish reading the others first"
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
    /// The version to be deleted is the only one of its certificate.
    #[error(
        "the only version of a certificate can't be deleted; the credential can, with all its versions"
    )]
    OnlyVersion,
    /// No operation has this name.
    #[error(transparent)]
    OperationUnknown(#[from] OperationUnknown),
    /// A permission was to have no operations.
    #[error("a permission needs at least one operation")]
    OperationsMissing,
    /// The caller is the actor of the permission that it would add, change or delete.
    #[error("an actor can't add, change or delete a permission of its own")]
    OwnPermission,
    /// A generate of a certificate came without parameters.
    #[error("parameters are required to generate a credential of type {0}")]
    ParametersMissing(CredentialType),
    /// The path of a permission breaks a rule.
    #[error(transparent)]
    PathMalformed(#[from] PathMalformed),
    /// The actor has a permission on the path already, or may do there already all that was to be added.
    #[error("the actor has this permission already")]
    PermissionExists,
    /// A permission was to get another path or actor.
    #[error(
        "the path and the actor of a permission can't be changed; add another and delete this one"
    )]
    PermissionFixed,
    /// There is no such permission.
    #[error("the permission does not exist or the caller may not access it")]
    PermissionNotFound,
    /// What a plugin made was to be made anew, by the same plugin.
    #[error(
        "the plugin with this digest still makes credentials of type {0}; configure another one first"
    )]
    PluginInUse(CredentialType),
    /// A plugin refused or failed.
    #[error(transparent)]
    Plugin(#[from] PluginFailure),
    /// A reference names a credential that is not of type json.
    #[error("the credential {0} is not of type json and can't be interpolated")]
    ReferenceNotJson(CredentialName),
    /// The values that a document refers to are too large together.
    #[error("the referenced values are larger than {limit} together")]
    ReferencesTooLarge {
        /// The limit, with its unit.
        limit: &'static str,
    },
    /// The response would be too large.
    #[error(
        "the response is too large: it may have at most {bytes_max} bytes; ask for fewer versions with versions=, or search below a longer path"
    )]
    ResponseTooLarge {
        /// The most bytes of one response.
        bytes_max: usize,
    },
    /// The database did not answer.
    #[error("the storage failed")]
    Repository(#[from] RepositoryFailure),
    /// A stored value could not be opened, or a new one sealed.
    #[error(transparent)]
    Seal(#[from] SealFailure),
    /// What was decrypted is not what is ever stored.
    #[error("the stored value is malformed")]
    StoredValueMalformed,
    /// A second version of one credential was to carry the transitional flag.
    #[error("the certificate has a transitional version already, and may have only one")]
    TransitionalExists,
    /// As many bulk regenerations are under way as there may be.
    #[error("too many bulk regenerations are under way; try again later")]
    TooManyBulkRegenerations,
    /// A plugin has made more credentials than are written together.
    #[error(
        "the plugin has made more than {limit} below this path, which is the most that are written together; ask for them path by path"
    )]
    TooManyGenerated {
        /// The limit, with its unit.
        limit: &'static str,
    },
    /// An authority has signed more certificates than are written together.
    #[error(
        "the authority and those below it have signed more than {limit}, which is the most that are written together"
    )]
    TooManySigned {
        /// The limit, with its unit.
        limit: &'static str,
    },
    /// The certificate has no such version to carry the transitional flag.
    #[error("the certificate's transitional version can't be changed: {0}")]
    TransitionalVersionRefused(&'static str),
    /// The credential exists with another type.
    #[error(
        "the credential exists with the type {0}, and the type of a credential can't be changed"
    )]
    TypeDiffers(CredentialType),
    /// Values of this type can only be set.
    #[error("credentials of type {0} can't be generated")]
    TypeNotGeneratable(CredentialType),
    /// No such type is configured.
    #[error("the type is not one of {}", .known.join(", "))]
    TypeUnknown {
        /// The types that there are.
        known: Vec<String>,
    },
    /// The value that was set has a member that its type does not know.
    #[error("the value has the unknown field {0}")]
    ValueMemberUnknown(String),
    /// The value that was set breaks a rule.
    #[error("{0}")]
    ValueRefused(String),
    /// The value, or a part of it, exceeds a limit.
    #[error("{what} may have at most {limit}")]
    ValueTooLarge {
        /// What is too large.
        what: &'static str,
        /// The limit, with its unit.
        limit: &'static str,
    },
    /// The caller may not write the credential, whether it exists or not.
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

impl From<RecognitionFailure> for Failure {
    fn from(failure: RecognitionFailure) -> Self {
        match failure {
            RecognitionFailure::Repository(failure) => failure.into(),
            RecognitionFailure::Seal(failure) => failure.into(),
        }
    }
}
