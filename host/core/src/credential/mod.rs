//! Credentials: their names, types and versions, and the use cases.
//!
//! Follow a request to generate a credential through one file per step: `generate` (permit, decide), `parameters`
//! (normalize), `draft` (generate the value), `version_store` (encrypt, add).

mod browse;
mod bulk_regenerate;
mod ca_rotation;
mod certificates;
mod child_versions;
mod draft;
mod forest;
mod generate;
mod inputs;
mod listing;
mod name;
mod parameters;
mod read;
mod regenerate;
mod rotation;
mod set;
mod summary;
mod use_cases;
mod version;
mod version_store;

pub(crate) use browse::{AFTER_SLASH, after_name};
pub use browse::{
    BROWSED_ENTRIES_MAX, BrowsedEntry, BrowsedPage, Filter, FirstFound, HISTORY_VERSIONS_MAX,
    History, ListedCredential,
};
pub use bulk_regenerate::{
    BulkCriterion, BulkOptions, BulkRegenerate, BulkRegenerateCredentials, BulkRegenerated,
    NotRegenerated,
};
pub use ca_rotation::{CaRotation, NewCertificateVersion};
pub use certificates::{
    CHAIN_CERTIFICATES_MAX, CHAIN_DEPTH_MAX, CertificateCredentials, CertificateSummary,
    CountedType, CredentialsByDaysLeft, DAYS_LEFT, PublicParts,
};
pub use child_versions::{BULK_BYTES_MAX, BULK_CERTIFICATES_MAX};
pub use draft::{CertificateSettings, CredentialTypes, KnownType};
pub use forest::{
    AUTHORITIES_MAX, AuthorityTree, FOREST_AUTHORITIES_MAX, FOREST_SIGNED_MAX, ForestPage,
};
pub use generate::{Generate, GenerateCredentials, Issuance, WriteMode, Written};
pub use inputs::{INPUTS_BYTES_MAX, INPUTS_MAX, InputVersion, NamedInput};
pub use listing::{
    ChainLink, EffectiveExpiry, Find, FindNames, FoundCredential, GeneratedCredential,
    IssuedCredential, IssuedRecord, ListedCertificate, ListedVersion, SignedCredential,
};
pub use name::{
    CredentialName, CredentialType, LookupName, NAME_CHARACTERS_MAX, NameError, PathPrefix,
    TypeError,
};
pub use parameters::{BaseVersion, RequestedParameters, canonical_parameters, is_generated_from};
pub use read::ReadCredentials;
pub use regenerate::{
    Regenerate, RegenerateCertificate, RegenerateCredentials, regeneration_parameters,
};
pub use rotation::{ObservedVersions, Rotation, RotationError, RotationStage};
pub use set::{ImportedProvenance, Set, SetCredentials};
pub use summary::{
    COUNTED_BELOW_PATHS_MAX, COUNTED_CREDENTIALS_MAX, COUNTED_PATHS_MAX, CredentialCounts,
    DUE_LISTED_MAX, DueCredential, DueCredentials, ROTATING_AUTHORITIES_MAX, RotatingAuthorities,
};
pub use use_cases::Credentials;
pub(crate) use version::SealedFor;
pub use version::{
    Content, CredentialVersion, DigestError, IssuerVersion, Lifetime, METADATA_CHARACTERS_MAX,
    Metadata, MetadataError, Parameters, PluginDigest, PluginIdentity, StoredVersion,
    VersionAttributes,
};
pub(crate) use version_store::{Pace, StoredCertificate};
pub use version_store::{TransitionalParent, VALUE_BYTES_MAX, VersionStore};
