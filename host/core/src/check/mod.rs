//! Checking everything that is stored: that it can be decrypted and read, and that all that is said twice agrees.
//!
//! Nothing is changed, and servers may be writing meanwhile. So a batch is judged as it was at one moment, and whatever seems
//! wrong is read and judged once more before it is told. What was written after the check began is not looked at, so that the
//! check comes to an end.

mod credential;
mod finding;
mod issuers;
mod permission;
mod version;

use std::sync::Arc;

pub use finding::{Fault, Finding, Subject};
use issuers::Issuers;
use version::VersionJudge;

use crate::ports::{
    Certificates, CheckEnds, CheckRepository, CheckedVersion, RepositoryFailure, Sealer, Stretch,
};

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
        let mut walk = Walk {
            check: self,
            observer,
            summary: CheckSummary::default(),
        };
        walk.database().await?;
        let ends = self.repository.ends().await?;
        walk.all(ends).await?;
        Ok(walk.summary)
    }

    fn judge(&self) -> VersionJudge<'_> {
        VersionJudge {
            repository: self.repository.as_ref(),
            sealer: self.sealer.as_ref(),
            certificates: self.certificates.as_ref(),
        }
    }
}

/// A check that is under way.
struct Walk<'a> {
    check: &'a Check,
    observer: &'a mut dyn CheckObserver,
    summary: CheckSummary,
}

impl Walk<'_> {
    async fn database(&mut self) -> Result<(), RepositoryFailure> {
        self.progress(CheckPart::Database, 0, 1);
        for line in self.check.repository.damage().await? {
            self.tell(Subject::Database, Fault::DatabaseDamaged(line));
        }
        self.progress(CheckPart::Database, 1, 1);
        Ok(())
    }

    async fn all(&mut self, ends: CheckEnds) -> Result<(), RepositoryFailure> {
        self.credentials(ends.credentials).await?;
        self.versions(ends.versions).await?;
        self.name_index(ends.indexed_names).await?;
        self.permissions(ends.permissions).await
    }

    async fn credentials(&mut self, end: i64) -> Result<(), RepositoryFailure> {
        let repository = Arc::clone(&self.check.repository);
        let mut after = 0;
        while let Some(stretch) = stretch(after, end, ROWS_MAX) {
            self.progress(CheckPart::Credentials, after, end);
            let batch = repository.credentials(stretch).await;
            let Some(batch) = self.readable("credential", after, batch)? else {
                return Ok(());
            };
            after = batch.last().map_or(end, |last| last.sequence);
            for read in &batch {
                self.summary.credentials += 1;
                if credential::faults(read).is_empty() {
                    continue;
                }
                let again = repository.credentials(alone(read.sequence)).await?;
                for read in &again {
                    let subject = Subject::Credential(read.name.clone());
                    self.tell_all(&subject, credential::faults(read));
                }
            }
        }
        self.progress(CheckPart::Credentials, end, end);
        Ok(())
    }

    async fn versions(&mut self, end: i64) -> Result<(), RepositoryFailure> {
        let (repository, judge) = (Arc::clone(&self.check.repository), self.check.judge());
        let mut issuers = Issuers::default();
        let mut after = 0;
        while let Some(stretch) = stretch(after, end, VERSIONS_MAX) {
            self.progress(CheckPart::Versions, after, end);
            let batch = repository.versions(stretch).await;
            let Some(batch) = self.readable("credential_version", after, batch)? else {
                return Ok(());
            };
            after = batch.last().map_or(end, |last| last.sequence);
            for read in &batch {
                self.summary.versions += 1;
                if judge.faults(read, &mut issuers).await?.is_empty() {
                    continue;
                }
                for read in &repository.versions(alone(read.sequence)).await? {
                    let faults = judge.faults(read, &mut Issuers::default()).await?;
                    self.tell_all(&subject_of(read), faults);
                }
            }
        }
        self.progress(CheckPart::Versions, end, end);
        Ok(())
    }

    async fn name_index(&mut self, end: i64) -> Result<(), RepositoryFailure> {
        let repository = Arc::clone(&self.check.repository);
        let mut after = 0;
        while let Some(stretch) = stretch(after, end, ROWS_MAX) {
            self.progress(CheckPart::NameIndex, after, end);
            let batch = repository.indexed_names(stretch).await;
            let Some(batch) = self.readable("credential_name", after, batch)? else {
                return Ok(());
            };
            after = batch.last().map_or(end, |last| last.sequence);
            for entry in batch.iter().filter(|entry| !entry.has_credential) {
                let again = repository.indexed_names(alone(entry.sequence)).await?;
                if again.iter().any(|entry| !entry.has_credential) {
                    let fault = Fault::IndexEntryWithoutCredential(entry.sequence);
                    self.tell(Subject::Database, fault);
                }
            }
        }
        self.progress(CheckPart::NameIndex, end, end);
        Ok(())
    }

    async fn permissions(&mut self, end: i64) -> Result<(), RepositoryFailure> {
        let repository = Arc::clone(&self.check.repository);
        let mut after = 0;
        while let Some(stretch) = stretch(after, end, ROWS_MAX) {
            self.progress(CheckPart::Permissions, after, end);
            let batch = repository.permissions(stretch).await;
            let Some(batch) = self.readable("permission", after, batch)? else {
                return Ok(());
            };
            after = batch.last().map_or(end, |last| last.sequence);
            for read in &batch {
                self.summary.permissions += 1;
                // A permission is one row: there is nothing beside it that could change meanwhile.
                self.tell_all(&Subject::Permission(read.id), permission::faults(read));
            }
        }
        self.progress(CheckPart::Permissions, end, end);
        Ok(())
    }

    /// The rows that were read; none when they can't be, however often one tries.
    fn readable<T>(
        &mut self,
        table: &'static str,
        after: i64,
        read: Result<T, RepositoryFailure>,
    ) -> Result<Option<T>, RepositoryFailure> {
        let cause = match read {
            Ok(rows) => return Ok(Some(rows)),
            Err(RepositoryFailure::Inconsistent(column)) => format!("{column} is malformed"),
            Err(RepositoryFailure::Query(cause)) => cause.to_string(),
            Err(failure @ RepositoryFailure::Unavailable(_)) => return Err(failure),
        };
        let fault = Fault::Unreadable {
            table,
            after,
            cause,
        };
        self.tell(Subject::Database, fault);
        Ok(None)
    }

    fn tell_all(&mut self, subject: &Subject, faults: Vec<Fault>) {
        for fault in faults {
            self.tell(subject.clone(), fault);
        }
    }

    fn tell(&mut self, subject: Subject, fault: Fault) {
        self.summary.findings += 1;
        self.observer.found(Finding { subject, fault });
    }

    fn progress(&mut self, part: CheckPart, position: i64, end: i64) {
        self.observer.progressed(CheckProgress {
            part,
            position: u64::try_from(position).unwrap_or_default(),
            end: u64::try_from(end).unwrap_or_default(),
        });
    }
}

fn subject_of(version: &CheckedVersion) -> Subject {
    Subject::Version {
        name: version.name.clone(),
        id: version.id,
    }
}

/// What comes next; none at the end.
fn stretch(after: i64, until: i64, count_max: u32) -> Option<Stretch> {
    (after < until).then_some(Stretch {
        after,
        until,
        count_max,
    })
}

/// One row.
fn alone(sequence: i64) -> Stretch {
    Stretch {
        after: sequence - 1,
        until: sequence,
        count_max: 1,
    }
}

/// How many short rows are read at once.
const ROWS_MAX: u32 = 500;

/// How many versions are read at once: each may have 64 KiB and more.
const VERSIONS_MAX: u32 = 100;
