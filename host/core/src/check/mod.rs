//! Checking everything that is stored: that it can be decrypted and read, and that all that is said twice agrees.
//!
//! Nothing is changed, and servers may be writing meanwhile. So a batch is judged as it was at one moment, and whatever seems
//! wrong is read and judged once more before it is told. What was written after the check began is not looked at, so that the
//! check comes to an end.

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

/// What it takes to check what is stored.
#[derive(Clone)]
pub struct Check {
    /// Where it is stored.
    pub repository: Arc<dyn CheckRepository>,
    /// What decrypts it.
    pub sealer: Arc<dyn Sealer>,
    /// What reads certificates.
    pub certificates: Arc<dyn Certificates>,
}

/// Who is told how a check goes.
pub trait CheckObserver: Send {
    /// Something is wrong.
    fn found(&mut self, finding: Finding);

    /// A part of the way is done.
    fn progressed(&mut self, progress: CheckProgress);
}

/// How far a check has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckProgress {
    /// What is being looked at.
    pub part: CheckPart,
    /// The last sequence of it that was looked at.
    pub position: u64,
    /// The last sequence that there is.
    pub end: u64,
}

/// What a check looks at, one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckPart {
    /// The file of the database.
    Database,
    /// The credentials.
    Credentials,
    /// Their versions.
    Versions,
    /// The index of names.
    NameIndex,
    /// The permissions.
    Permissions,
}

/// What was looked at, and what was found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CheckSummary {
    /// The credentials that were looked at.
    pub credentials: u64,
    /// The versions.
    pub versions: u64,
    /// The permissions.
    pub permissions: u64,
    /// The findings.
    pub findings: u64,
}

impl Check {
    /// Looks at everything that is stored at this moment.
    ///
    /// # Errors
    /// When the database does not answer. What can't be read at all is a finding.
    pub async fn run(
        &self,
        observer: &mut dyn CheckObserver,
    ) -> Result<CheckSummary, RepositoryFailure> {
        Walk::new(self, observer).all().await
    }
}
