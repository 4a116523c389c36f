//! What can be done with certificates alone: listing them with who signed whom, and handling their versions one by one, so
//! that an authority can be replaced while its certificates stay in use.
//!
//! A certificate is named by the id of its credential here. That id ends with the credential: one that is made anew under
//! the same name has another.

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
