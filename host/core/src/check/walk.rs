//! Checking all tables, batch by batch.

use std::sync::Arc;

use uuid::Uuid;

use super::{
    Check, CheckObserver, CheckPart, CheckProgress, CheckSummary, Fault, Finding, Subject,
    credential,
    issuers::Issuers,
    permission,
    reading::{Batch, Reading, Sequenced, alone, unless_unavailable},
    version::VersionChecker,
};
use crate::ports::{
    CheckEnds, CheckedCredential, CheckedIndexEntry, CheckedPermission, CheckedVersion,
    RecognitionFailure, RepositoryFailure,
};

/// A check in progress.
pub(super) struct Walk<'a> {
    check: &'a Check,
    observer: &'a mut dyn CheckObserver,
    summary: CheckSummary,
}

impl<'a> Walk<'a> {
    pub(super) fn new(check: &'a Check, observer: &'a mut dyn CheckObserver) -> Self {
        Self {
            check,
            observer,
            summary: CheckSummary::default(),
        }
    }

    /// Checks all tables.
    pub(super) async fn all(mut self) -> Result<CheckSummary, RepositoryFailure> {
        self.database().await?;
        let ends = self.ends().await?;
        self.credentials(ends.credentials).await?;
        self.versions(ends.versions).await?;
        self.name_index(ends.indexed_names).await?;
        self.permissions(ends.permissions).await?;
        Ok(self.summary)
    }

    async fn database(&mut self) -> Result<(), RepositoryFailure> {
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
    async fn ends(&mut self) -> Result<CheckEnds, RepositoryFailure> {
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

    async fn credentials(&mut self, end: i64) -> Result<(), RepositoryFailure> {
        let repository = Arc::clone(&self.check.repository);
        let mut reading = Reading::new("credential", end, ROWS_MAX);
        while !reading.is_done() {
            self.progress(CheckPart::Credentials, reading.position());
            let batch = reading.next(async |range| repository.credentials(range).await);
            for read in self.readable(batch.await?) {
                self.summary.credentials += 1;
                if credential::faults(&read).is_empty() {
                    continue;
                }
                let again = repository.credentials(alone(read.sequence)).await;
                for read in self.again("credential", read.sequence, again)? {
                    let subject = Subject::Credential(read.name.clone());
                    self.report_all(&subject, credential::faults(&read));
                }
            }
        }
        self.progress(CheckPart::Credentials, (end, end));
        Ok(())
    }

    async fn versions(&mut self, end: i64) -> Result<(), RepositoryFailure> {
        let repository = Arc::clone(&self.check.repository);
        let mut issuers = Issuers::default();
        let mut reading = Reading::new("credential_version", end, VERSIONS_MAX);
        while !reading.is_done() {
            self.progress(CheckPart::Versions, reading.position());
            let batch = reading.next(async |range| repository.versions(range).await);
            for read in self.readable(batch.await?) {
                self.summary.versions += 1;
                let faults = self.version_faults(&read, &mut issuers).await?;
                if faults.is_empty() {
                    continue;
                }
                let uncompared = self.recognise_keys(&faults).await?;
                let again = repository.versions(alone(read.sequence)).await;
                for read in self.again("credential_version", read.sequence, again)? {
                    let mut fresh = Issuers::default();
                    let faults = self.version_faults(&read, &mut fresh).await?;
                    let faults = faults.into_iter().map(|fault| match fault {
                        Fault::KeyUnknown(key_id) if uncompared.contains(&key_id) => {
                            Fault::KeyNotCompared(key_id)
                        }
                        fault => fault,
                    });
                    self.report_all(&subject_of(&read), faults.collect());
                }
            }
        }
        self.progress(CheckPart::Versions, (end, end));
        Ok(())
    }

    async fn version_faults(
        &self,
        version: &CheckedVersion,
        issuers: &mut Issuers,
    ) -> Result<Vec<Fault>, RepositoryFailure> {
        let checker = VersionChecker {
            repository: self.check.repository.as_ref(),
            sealer: self.check.sealer.as_ref(),
            certificates: self.check.certificates.as_ref(),
        };
        checker.faults(version, issuers).await
    }

    /// Recognises keys that a server has started to use since the start of the check. Returns the keys that can't currently be
    /// compared with the configured keys.
    async fn recognise_keys(&self, faults: &[Fault]) -> Result<Vec<Uuid>, RepositoryFailure> {
        let mut uncompared = Vec::new();
        for fault in faults {
            let Fault::KeyUnknown(key_id) = fault else {
                continue;
            };
            match self.check.sealer.recognise(*key_id).await {
                Ok(()) => {}
                Err(RecognitionFailure::Repository(failure)) => {
                    if unless_unavailable::<()>(Err(failure))?.is_err() {
                        uncompared.push(*key_id);
                    }
                }
                Err(RecognitionFailure::Seal(_)) => uncompared.push(*key_id),
            }
        }
        Ok(uncompared)
    }

    async fn name_index(&mut self, end: i64) -> Result<(), RepositoryFailure> {
        let repository = Arc::clone(&self.check.repository);
        let mut reading = Reading::new("credential_name", end, ROWS_MAX);
        while !reading.is_done() {
            self.progress(CheckPart::NameIndex, reading.position());
            let batch = reading.next(async |range| repository.indexed_names(range).await);
            let rows = self.readable(batch.await?).into_iter();
            for entry in rows.filter(|entry| !entry.has_credential) {
                let again = repository.indexed_names(alone(entry.sequence)).await;
                let again = self.again("credential_name", entry.sequence, again)?;
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

    async fn wrongly_indexed(&mut self) -> Result<(), RepositoryFailure> {
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
            let again = repository.credentials(alone(sequence)).await;
            for read in self.again("credential", sequence, again)? {
                // The check of the credential has reported a missing index entry.
                if read.is_indexed {
                    self.report(Subject::Credential(read.name), Fault::NameNotIndexed);
                }
            }
        }
        Ok(())
    }

    async fn permissions(&mut self, end: i64) -> Result<(), RepositoryFailure> {
        let repository = Arc::clone(&self.check.repository);
        let mut reading = Reading::new("permission", end, ROWS_MAX);
        while !reading.is_done() {
            self.progress(CheckPart::Permissions, reading.position());
            let batch = reading.next(async |range| repository.permissions(range).await);
            for read in self.readable(batch.await?) {
                self.summary.permissions += 1;
                // A permission is one row, so there is no other row that could change concurrently.
                self.report_all(&Subject::Permission(read.id), permission::faults(&read));
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
    fn again<T>(
        &mut self,
        table: &'static str,
        sequence: i64,
        read: Result<Vec<T>, RepositoryFailure>,
    ) -> Result<Vec<T>, RepositoryFailure> {
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

fn subject_of(version: &CheckedVersion) -> Subject {
    Subject::Version {
        name: version.name.clone(),
        id: version.id,
    }
}

impl Sequenced for CheckedCredential {
    fn sequence(&self) -> i64 {
        self.sequence
    }
}

impl Sequenced for CheckedVersion {
    fn sequence(&self) -> i64 {
        self.sequence
    }
}

impl Sequenced for CheckedIndexEntry {
    fn sequence(&self) -> i64 {
        self.sequence
    }
}

impl Sequenced for CheckedPermission {
    fn sequence(&self) -> i64 {
        self.sequence
    }
}

/// The maximum number of short rows per batch.
const ROWS_MAX: u32 = 500;

/// The maximum number of versions per batch. A version may have more than 64 KiB.
const VERSIONS_MAX: u32 = 100;
