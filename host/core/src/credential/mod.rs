//! Credentials: their names, types and versions, and the use cases.
//!
//! Follow a request to generate a credential through one file per step: `generate` (permit, decide), `guest_constraints`
//! (normalize), `draft` (generate the value), `version_store` (encrypt, add).

mod authority;
mod bulk_regenerate;
mod ca_rotation;
mod certificates;
mod content;
mod draft;
mod generate;
mod guest_constraints;
mod name;
mod parameters;
mod read;
mod regenerate;
mod render;
mod service;
mod set;
mod version;
mod version_store;

pub use authority::TransitionalParent;
pub use bulk_regenerate::{
    BULK_CERTIFICATES_MAX, BULK_REGENERATIONS_MAX, BulkOptions, BulkRegenerate, BulkRegenerated,
    BulkRegenerations, NotRegenerated,
};
pub use ca_rotation::NewCertificateVersion;
pub use certificates::{
    CHAIN_DEPTH_MAX, CertificateSummary, CertificatesByDaysLeft, ChainLink, DAYS_LEFT,
    EffectiveExpiry, IssuedCredential, IssuedRecord, ListedCertificate, ListedVersion,
};
pub(crate) use content::{Content, SealedFor, StoredCertificate};
pub use content::{LONG_FIELD_CHARACTERS_MAX, VALUE_BYTES_MAX};
pub use generate::{Generate, WriteMode, canonical_parameters, is_generated_from};
pub use guest_constraints::BaseVersion;
pub use name::{
    CredentialName, CredentialType, LookupName, NAME_CHARACTERS_MAX, NameError, PathPrefix,
    TypeError,
};
pub use parameters::{Parameters, RequestedParameters};
pub use read::{Find, FindNames, FoundCredential, GeneratedCredential};
pub use regenerate::{Regenerate, RegenerateCertificate, regeneration_parameters};
pub use service::{Credentials, KnownType};
pub use set::{ImportedProvenance, Set};
pub use version::{
    CredentialVersion, DigestError, Issuance, IssuerVersion, METADATA_CHARACTERS_MAX, Metadata,
    MetadataError, PluginDigest, PluginIdentity, Provenance, StoredVersion, VersionAttributes,
    Written,
};
pub use version_store::VersionStore;
