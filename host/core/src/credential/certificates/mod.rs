//! The use cases of certificates: listing them with their signers, and managing single versions, so that a CA can be rotated
//! while its certificates stay in use.
//!
//! These use cases address a certificate by the id of its credential. A credential that is deleted and recreated under the
//! same name gets a new id.

mod add_version;
mod child_versions;
mod days_left;
mod delete_version;
mod effective_expiry;
mod list;
mod regenerate;
mod transitional;
mod versions;

pub use add_version::NewCertificateVersion;
pub use days_left::{CertificatesByDaysLeft, DAYS_LEFT};
pub use effective_expiry::{CHAIN_DEPTH_MAX, ChainLink, EffectiveExpiry};
pub use list::{
    CertificateSummary, IssuedCredential, IssuedRecord, ListedCertificate, ListedVersion,
};
pub use regenerate::RegenerateCertificate;
