//! Credentials: their names, types and versions, and one file per use case.

mod asked;
mod authority;
mod bulk_regenerate;
mod certificates;
mod content;
mod current;
mod delete;
mod find;
mod generate;
mod get;
mod host_work;
mod known_types;
mod make;
mod metadata;
mod name;
mod new_issuer;
mod parameters;
mod plugin_digest;
mod presented;
mod readable;
mod regenerate;
mod requested_parameters;
mod service;
mod set;
mod set_certificate;
mod stored_certificate;
mod stored_parameters;
mod r#type;
mod value;
mod version;

pub use authority::TransitionalParent;
pub use bulk_regenerate::{
    BULK_CERTIFICATES_MAX, BULK_REGENERATIONS_MAX, BulkRegenerate, BulkRegenerations,
};
pub use certificates::{
    CHAIN_DEPTH_MAX, CertificateSummary, CertificatesByDaysLeft, ChainLink, DAYS_LEFT,
    EffectiveExpiry, IssuedCredential, IssuedRecord, ListedCertificate, ListedVersion,
    NewCertificateVersion, RegenerateCertificate,
};
pub(crate) use content::{Content, SealedFor};
pub use find::{Find, FindNames, FoundCredential, GeneratedCredential};
pub use generate::{Generate, WriteMode};
pub use known_types::KnownType;
pub use metadata::{METADATA_CHARACTERS_MAX, Metadata, MetadataTooLong};
pub use name::{CredentialName, LookupName, NAME_CHARACTERS_MAX, NameMalformed, PathPrefix};
pub use parameters::Parameters;
pub use plugin_digest::{DigestMalformed, PluginDigest};
pub use regenerate::Regenerate;
pub use requested_parameters::RequestedParameters;
pub use service::Credentials;
pub use set::Set;
pub(crate) use stored_certificate::StoredCertificate;
pub use r#type::{CredentialType, TypeMalformed};
pub use value::{LONG_MEMBER_CHARACTERS_MAX, VALUE_BYTES_MAX};
pub use version::{
    CertificateMarks, CredentialVersion, Issuance, IssuerVersion, PluginIdentity, StoredVersion,
    Written,
};
