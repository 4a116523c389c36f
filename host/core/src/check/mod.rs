//! Checking the whole database: that every record can be read and decrypted, and that redundant data is consistent.
//!
//! The check changes nothing, and servers may write concurrently. Therefore each batch is one snapshot, and a faulty record
//! is read and checked again before it is reported. Records written after the start of the check are skipped, so that the
//! check terminates.

mod credential;
mod finding;
mod issuers;
mod permission;
mod reading;
#[cfg(test)]
mod tests;
mod version;
mod walk;

use std::sync::Arc;

pub use finding::{Fault, Finding, Subject};
use walk::Walk;

use crate::ports::{Certificates, CheckRepository, RepositoryFailure, Sealer};

/// The dependencies of a check.
#[derive(Clone)]
pub struct Check {
    /// The database.
    pub repository: Arc<dyn CheckRepository>,
    /// Decrypts versions.
    pub sealer: Arc<dyn Sealer>,
    /// Reads certificates.
    pub certificates: Arc<dyn Certificates>,
}

/// Receives the findings and the progress of a check.
pub trait CheckObserver: Send {
    /// Reports a finding.
    fn found(&mut self, finding: Finding);

    /// Reports progress.
    fn progressed(&mut self, progress: CheckProgress);
}

/// The progress of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckProgress {
    /// The part in progress.
    pub part: CheckPart,
    /// The last sequence of this part that was checked.
    pub position: u64,
    /// The last sequence of this part.
    pub end: u64,
}

/// A part of a check. Parts are checked one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckPart {
    /// The database file.
    Database,
    /// The credentials.
    Credentials,
    /// The versions of the credentials.
    Versions,
    /// The name index.
    NameIndex,
    /// The permissions.
    Permissions,
}

/// The numbers of checked records and of findings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CheckSummary {
    /// The credentials.
    pub credentials: u64,
    /// The versions.
    pub versions: u64,
    /// The permissions.
    pub permissions: u64,
    /// The findings.
    pub findings: u64,
}

impl Check {
    /// Checks all current records.
    ///
    /// # Errors
    /// If the database is unavailable. An unreadable record is a finding instead.
    pub async fn run(
        &self,
        observer: &mut dyn CheckObserver,
    ) -> Result<CheckSummary, RepositoryFailure> {
        Walk::new(self, observer).all().await
    }
}
