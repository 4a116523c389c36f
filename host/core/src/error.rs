//! The errors of use cases.

use crate::{
    credential::{
        BULK_CERTIFICATES_MAX, CredentialName, CredentialType, INPUTS_BYTES_MAX, MetadataError,
        NameError,
    },
    permission::{Actor, ActorError, PathError, UnknownOperationError},
    permission_management::LISTED_PERMISSIONS_MAX,
    ports::{
        CertificateError, PluginCallError, RecognitionError, RepositoryError, SealError, Violation,
    },
};

/// An error of a use case. `Display` is safe to show to the caller: it never contains a value or an internal cause, which is
/// only available from `source`.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the variants mean")]
pub enum UseCaseError {
    #[error(transparent)]
    ActorMalformed(#[from] ActorError),
    #[error(
        "a bulk regeneration or a step of a rotation of this caller is in progress; try again when it is complete"
    )]
    BulkChangeOfActor,
    #[error("the credentials to change are larger than 256 MiB in total, the limit of one request")]
    BulkTooLarge,
    #[error(transparent)]
    CertificateRefused(#[from] CertificateError),
    #[error("other requests changed the credential at the same time; try again")]
    Contended,
    #[error("the generated certificate is invalid")]
    GeneratedCertificateRefused(#[source] CertificateError),
    #[error(
        "the parameter {0} names a credential that does not exist or that the caller may not read"
    )]
    InputNotFound(String),
    #[error(
        "the values of the input credentials are larger than {INPUTS_BYTES_MAX} bytes in total"
    )]
    InputsTooLarge,
    #[error("the CA does not exist, is not a certificate, or the caller may not read it")]
    IssuerNotFound,
    #[error("its CA {0} was not regenerated")]
    IssuerNotRegenerated(CredentialName),
    #[error("the CA {0} can't sign: its {1}")]
    IssuerUnusable(CredentialName, CertificateError),
    #[error(transparent)]
    MetadataTooLong(#[from] MetadataError),
    #[error(transparent)]
    NameMalformed(#[from] NameError),
    #[error("no credential was regenerated, because regenerating {name} failed")]
    NotAllRegenerated {
        name: CredentialName,
        #[source]
        reason: Box<UseCaseError>,
    },
    #[error("the server has too little free memory for the response; try again later")]
    NoResponseMemory,
    #[error(
        "the responses to this caller exceed its memory limit; finish reading earlier responses first"
    )]
    NoResponseMemoryOfActor,
    #[error("this server has no resolver plugin configured and can't interpolate")]
    NoResolver,
    #[error("the credential does not exist or the caller may not access it")]
    NotFound,
    #[error("the credential can't be regenerated: {0}")]
    NotRegeneratable(String),
    #[error("the only version of a certificate can't be deleted; delete the credential instead")]
    OnlyVersion,
    #[error(transparent)]
    OperationUnknown(#[from] UnknownOperationError),
    #[error("a permission needs at least one operation")]
    OperationsMissing,
    #[error("an actor can't add, change or delete its own permissions")]
    OwnPermission,
    #[error("parameters are required to generate a credential of type {0}")]
    ParametersMissing(CredentialType),
    #[error(transparent)]
    PathMalformed(#[from] PathError),
    #[error("the actor {0} already has all operations that the request grants it")]
    PermissionCovered(Actor),
    #[error("the actor already has a permission on this path; change its operations instead")]
    PermissionExists,
    #[error(
        "the path and the actor of a permission can't be changed; add a permission and delete this one"
    )]
    PermissionFixed,
    #[error("the permission does not exist or the caller may not access it")]
    PermissionNotFound,
    #[error("the caller may not add permissions on this path, which requires write_acl")]
    PermissionNotAddable,
    #[error("the caller may not read the permissions on this path, which requires read_acl")]
    PermissionsNotReadable,
    #[error(
        "the plugin with this digest still generates credentials of type {0}; configure another plugin first"
    )]
    PluginInUse(CredentialType),
    #[error(transparent)]
    Plugin(#[from] PluginCallError),
    #[error("the value of the credential {name} has no field {field}")]
    ReferencedFieldMissing { name: String, field: String },
    #[error(
        "the credential {0} can't be inserted into a string: only strings, numbers and booleans can"
    )]
    ReferenceNotScalar(String),
    #[error("the credential {0} is not of type json and can't be interpolated")]
    ReferenceNotJson(CredentialName),
    #[error("the referenced credential {0} does not exist or the caller may not access it")]
    ReferenceNotFound(String),
    #[error("the referenced values are larger than 16 MiB in total")]
    ReferencesTooLarge,
    #[error(
        "the response is too large: it must have at most {bytes_max} bytes; request fewer versions with versions=, or search below a longer path"
    )]
    ResponseTooLarge { bytes_max: usize },
    #[error("the storage failed")]
    Repository(#[from] RepositoryError),
    #[error(transparent)]
    Seal(#[from] SealError),
    #[error("the stored value is malformed")]
    StoredValueMalformed,
    #[error(
        "the certificate already has a transitional version; complete its rotation, or clear its transitional flag"
    )]
    TransitionalExists,
    #[error("too many bulk regenerations and steps of rotations are in progress; try again later")]
    TooManyBulkChanges,
    #[error(
        "more than {BULK_CERTIFICATES_MAX} credentials were derived from this credential, the limit of one request"
    )]
    TooManyDerived,
    #[error(
        "the plugin generated more than {BULK_CERTIFICATES_MAX} credentials below this path, the limit of one request; send separate requests for longer paths"
    )]
    TooManyGenerated,
    #[error(
        "the credential has more than {LISTED_PERMISSIONS_MAX} permissions, the limit of a list"
    )]
    TooManyPermissions,
    #[error(
        "the CA and the CAs below it have signed more than {BULK_CERTIFICATES_MAX} credentials, the limit of one request; delete credentials that are not needed"
    )]
    TooManySigned,
    #[error("the certificate's transitional version can't be changed: {0}")]
    TransitionalVersionRefused(&'static str),
    #[error("the credential exists with type {0}; the type of a credential can't be changed")]
    TypeDiffers(CredentialType),
    #[error("credentials of type {0} can't be generated")]
    TypeNotGeneratable(CredentialType),
    #[error("type must be one of {}", .known.join(", "))]
    TypeUnknown { known: Vec<String> },
    #[error("the value has the unknown field {0}")]
    ValueFieldUnknown(String),
    #[error("{0}")]
    ValueRefused(String),
    #[error("{what} must have at most {max} {unit}")]
    ValueTooLarge {
        what: &'static str,
        max: usize,
        unit: &'static str,
    },
    #[error("the certificate has no version with this id; list its versions to get their ids")]
    VersionNotFound,
    #[error("the caller may not write this credential")]
    WriteNotPermitted,
}

impl UseCaseError {
    /// Returns the error for a parameter that breaks a rule of the host.
    pub(crate) fn parameter_refused(field: &str, rule: &str) -> Self {
        Self::Plugin(PluginCallError::ParametersRefused(Violation {
            field: Some(field.to_owned()),
            rule: rule.to_owned(),
        }))
    }
}

impl From<RecognitionError> for UseCaseError {
    fn from(failure: RecognitionError) -> Self {
        match failure {
            RecognitionError::Repository(failure) => failure.into(),
            RecognitionError::Seal(failure) => failure.into(),
        }
    }
}
