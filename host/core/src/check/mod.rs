//! Checking the whole database: that every record can be read and decrypted, and that redundant data is consistent.
//!
//! The check changes nothing, and servers may write concurrently. Therefore each batch is one snapshot, and a faulty record
//! is read and checked again before it is reported. Records written after the start of the check are skipped, so that the
//! check terminates.

mod finding;
mod reading;
mod version;

use std::{collections::HashMap, sync::Arc};

use uuid::Uuid;

use crate::{
    credential::{CredentialName, CredentialType, LookupName},
    permission::{Actor, Operations, PermissionPath},
    ports::{
        Certificates, CheckEnds, CheckRepository, CheckedCredential, CheckedPermission,
        RecognitionError, RepositoryError, Sealer,
    },
};
use reading::{Batch, Reading, single_row, unless_unavailable};
use version::VersionChecker;

pub use finding::{Fault, Finding, Subject};

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
    ) -> Result<CheckSummary, RepositoryError> {
        let mut walk = Walk {
            check: self,
            observer,
            summary: CheckSummary::default(),
        };
        walk.database().await?;
        let ends = walk.ends().await?;
        walk.credentials(ends.credentials).await?;
        walk.versions(ends.versions).await?;
        walk.name_index(ends.indexed_names).await?;
        walk.permissions(ends.permissions).await?;
        Ok(walk.summary)
    }
}

/// A check in progress.
struct Walk<'a> {
    check: &'a Check,
    observer: &'a mut dyn CheckObserver,
    summary: CheckSummary,
}

impl Walk<'_> {
    async fn database(&mut self) -> Result<(), RepositoryError> {
        self.progress(CheckPart::Database, (0, 1));
        let damage = unless_unavailable(self.check.repository.damage().await)?;
        for line in damage.unwrap_or_else(|cause| vec![cause]) {
            self.report(Subject::Database, Fault::DatabaseDamaged(line));
        }
        let differences = unless_unavailable(self.check.repository.schema_differences().await)?;
        for line in differences.unwrap_or_else(|cause| vec![cause]) {
            self.report(Subject::Database, Fault::SchemaDiffers(line));
        }
        self.progress(CheckPart::Database, (1, 1));
        Ok(())
    }

    /// Returns the last sequence of each table. If they can't be read, each table is read to its last row.
    async fn ends(&mut self) -> Result<CheckEnds, RepositoryError> {
        let cause = match unless_unavailable(self.check.repository.ends().await)? {
            Ok(ends) => return Ok(ends),
            Err(cause) => cause,
        };
        self.report(Subject::Database, Fault::DatabaseDamaged(cause));
        Ok(CheckEnds {
            credentials: i64::MAX,
            versions: i64::MAX,
            indexed_names: i64::MAX,
            permissions: i64::MAX,
        })
    }

    async fn credentials(&mut self, end: i64) -> Result<(), RepositoryError> {
        let repository = Arc::clone(&self.check.repository);
        let mut reading = Reading::new("credential", end, ROWS_MAX);
        while !reading.is_done() {
            self.progress(CheckPart::Credentials, reading.position());
            let read = async |range| repository.credentials(range).await;
            let batch = reading.next(read, |credential| credential.sequence);
            for read in self.readable(batch.await?) {
                self.summary.credentials += 1;
                if credential_faults(&read).is_empty() {
                    continue;
                }
                let again = repository.credentials(single_row(read.sequence)).await;
                for read in self.reread("credential", read.sequence, again)? {
                    let subject = Subject::Credential(read.name.clone());
                    self.report_all(&subject, credential_faults(&read));
                }
            }
        }
        self.progress(CheckPart::Credentials, (end, end));
        Ok(())
    }

    async fn versions(&mut self, end: i64) -> Result<(), RepositoryError> {
        let repository = Arc::clone(&self.check.repository);
        let check = self.check;
        let checker = || VersionChecker {
            repository: check.repository.as_ref(),
            sealer: check.sealer.as_ref(),
            certificates: check.certificates.as_ref(),
            issuers: HashMap::new(),
        };
        let mut first = checker();
        let mut reading = Reading::new("credential_version", end, VERSIONS_MAX);
        while !reading.is_done() {
            self.progress(CheckPart::Versions, reading.position());
            let read = async |range| repository.versions(range).await;
            let batch = reading.next(read, |version| version.sequence);
            for read in self.readable(batch.await?) {
                self.summary.versions += 1;
                let faults = first.faults(&read).await?;
                if faults.is_empty() {
                    continue;
                }
                let uncompared = self.recognize_keys(&faults).await?;
                let again = repository.versions(single_row(read.sequence)).await;
                for read in self.reread("credential_version", read.sequence, again)? {
                    let faults = checker().faults(&read).await?;
                    let faults = faults.into_iter().map(|fault| match fault {
                        Fault::KeyUnknown(key_id) if uncompared.contains(&key_id) => {
                            Fault::KeyNotCompared(key_id)
                        }
                        fault => fault,
                    });
                    let faults = faults.collect();
                    let (name, id) = (read.name, read.id);
                    self.report_all(&Subject::Version { name, id }, faults);
                }
            }
        }
        self.progress(CheckPart::Versions, (end, end));
        Ok(())
    }

    /// Recognizes keys that a server has started to use since the start of the check. Returns the keys that can't currently be
    /// compared with the configured keys.
    async fn recognize_keys(&self, faults: &[Fault]) -> Result<Vec<Uuid>, RepositoryError> {
        let mut uncompared = Vec::new();
        for fault in faults {
            let Fault::KeyUnknown(key_id) = fault else {
                continue;
            };
            match self.check.sealer.recognize(*key_id).await {
                Ok(()) => {}
                Err(RecognitionError::Repository(failure)) => {
                    if unless_unavailable::<()>(Err(failure))?.is_err() {
                        uncompared.push(*key_id);
                    }
                }
                Err(RecognitionError::Seal(_)) => uncompared.push(*key_id),
            }
        }
        Ok(uncompared)
    }

    async fn name_index(&mut self, end: i64) -> Result<(), RepositoryError> {
        let repository = Arc::clone(&self.check.repository);
        let mut reading = Reading::new("credential_name", end, ROWS_MAX);
        while !reading.is_done() {
            self.progress(CheckPart::NameIndex, reading.position());
            let read = async |range| repository.indexed_names(range).await;
            let batch = reading.next(read, |entry| entry.sequence);
            let rows = self.readable(batch.await?).into_iter();
            for entry in rows.filter(|entry| !entry.has_credential) {
                let again = repository.indexed_names(single_row(entry.sequence)).await;
                let again = self.reread("credential_name", entry.sequence, again)?;
                if again.iter().any(|entry| !entry.has_credential) {
                    let fault = Fault::IndexEntryWithoutCredential(entry.sequence);
                    self.report(Subject::Database, fault);
                }
            }
        }
        self.wrongly_indexed().await?;
        self.progress(CheckPart::NameIndex, (end, end));
        Ok(())
    }

    async fn wrongly_indexed(&mut self) -> Result<(), RepositoryError> {
        let repository = Arc::clone(&self.check.repository);
        let wrong = match unless_unavailable(repository.wrongly_indexed().await)? {
            Ok(wrong) => wrong,
            Err(cause) => {
                let fault = Fault::Unreadable {
                    table: "credential_name",
                    after: 0,
                    until: None,
                    cause,
                };
                self.report(Subject::Database, fault);
                return Ok(());
            }
        };
        for sequence in wrong {
            let again = repository.credentials(single_row(sequence)).await;
            for read in self.reread("credential", sequence, again)? {
                // The check of the credential has reported a missing index entry.
                if read.is_indexed {
                    self.report(Subject::Credential(read.name), Fault::NameNotIndexed);
                }
            }
        }
        Ok(())
    }

    async fn permissions(&mut self, end: i64) -> Result<(), RepositoryError> {
        let repository = Arc::clone(&self.check.repository);
        let mut reading = Reading::new("permission", end, ROWS_MAX);
        while !reading.is_done() {
            self.progress(CheckPart::Permissions, reading.position());
            let read = async |range| repository.permissions(range).await;
            let batch = reading.next(read, |permission| permission.sequence);
            for read in self.readable(batch.await?) {
                self.summary.permissions += 1;
                // A permission is one row, so there is no other row that could change concurrently.
                self.report_all(&Subject::Permission(read.id), permission_faults(&read));
            }
        }
        self.progress(CheckPart::Permissions, (end, end));
        Ok(())
    }

    /// Returns the readable rows and reports the unreadable parts.
    fn readable<T>(&mut self, batch: Batch<T>) -> Vec<T> {
        self.report_all(&Subject::Database, batch.unreadable);
        batch.rows
    }

    /// Returns the row that was read again, or reports that it can't be read.
    fn reread<T>(
        &mut self,
        table: &'static str,
        sequence: i64,
        read: Result<Vec<T>, RepositoryError>,
    ) -> Result<Vec<T>, RepositoryError> {
        let cause = match unless_unavailable(read)? {
            Ok(rows) => return Ok(rows),
            Err(cause) => cause,
        };
        let fault = Fault::Unreadable {
            table,
            after: sequence - 1,
            until: Some(sequence),
            cause,
        };
        self.report(Subject::Database, fault);
        Ok(Vec::new())
    }

    fn report_all(&mut self, subject: &Subject, faults: Vec<Fault>) {
        for fault in faults {
            self.report(subject.clone(), fault);
        }
    }

    fn report(&mut self, subject: Subject, fault: Fault) {
        self.summary.findings += 1;
        self.observer.found(Finding { subject, fault });
    }

    fn progress(&mut self, part: CheckPart, (position, end): (i64, i64)) {
        self.observer.progressed(CheckProgress {
            part,
            position: u64::try_from(position).unwrap_or_default(),
            end: u64::try_from(end).unwrap_or_default(),
        });
    }
}

/// The maximum number of short rows per batch.
const ROWS_MAX: u32 = 500;

/// The maximum number of versions per batch. A version may have more than 64 KiB.
const VERSIONS_MAX: u32 = 100;

fn credential_faults(credential: &CheckedCredential) -> Vec<Fault> {
    let is_type = |parsed: CredentialType| parsed.as_str() == credential.credential_type.as_str();
    let rules = [
        (
            CredentialName::parse(&credential.name)
                .is_ok_and(|name| name.as_str() == credential.name),
            Fault::NameMalformed,
        ),
        (
            LookupName::new(&credential.name).folded() == credential.name_folded,
            Fault::NameFoldedDiffers,
        ),
        (
            CredentialType::parse(&credential.credential_type).is_ok_and(is_type),
            Fault::TypeMalformed,
        ),
        (credential.is_indexed, Fault::NameNotIndexed),
        (
            credential.newest_found.sequence.is_some(),
            Fault::CredentialWithoutVersions,
        ),
        (
            credential.newest == credential.newest_found,
            Fault::NewestDiffers,
        ),
        (
            credential.current == credential.current_found,
            Fault::CurrentDiffers,
        ),
        (
            credential.transitional_count <= 1,
            Fault::SeveralTransitional(credential.transitional_count),
        ),
    ];
    let broken = rules.into_iter().filter(|(holds, _)| !holds);
    broken.map(|(_, fault)| fault).collect()
}

fn permission_faults(permission: &CheckedPermission) -> Vec<Fault> {
    let mut faults = Vec::new();
    if let Err(rule) = PermissionPath::parse(&permission.path) {
        faults.push(Fault::PathMalformed(rule));
    }
    if Actor::parse(&permission.actor).is_err() {
        faults.push(Fault::ActorMalformed);
    }
    let operations = u8::try_from(permission.operations).ok();
    if operations.and_then(Operations::from_bits).is_none() {
        faults.push(Fault::OperationsMalformed);
    }
    faults
}
