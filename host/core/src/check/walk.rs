//! The way through everything that is stored, a batch after the other.

use std::sync::Arc;

use uuid::Uuid;

use super::{
    Check, CheckObserver, CheckPart, CheckProgress, CheckSummary, Fault, Finding, Subject,
    credential,
    issuers::Issuers,
    permission,
    reading::{Batch, Reading, Sequenced, alone, unless_away},
    version::VersionJudge,
};
use crate::ports::{
    CheckEnds, CheckedCredential, CheckedIndexEntry, CheckedPermission, CheckedVersion,
    RecognitionFailure, RepositoryFailure,
};

/// A check that is under way.
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

    /// Looks at everything.
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
        let damage = unless_away(self.check.repository.damage().await)?;
        for line in damage.unwrap_or_else(|cause| vec![cause]) {
            self.tell(Subject::Database, Fault::DatabaseDamaged(line));
        }
        let differences = unless_away(self.check.repository.schema_differences().await)?;
        for line in differences.unwrap_or_else(|cause| vec![cause]) {
            self.tell(Subject::Database, Fault::SchemaDiffers(line));
        }
        self.progress(CheckPart::Database, (1, 1));
        Ok(())
    }

    /// Where it can't be told where the tables end, each is read as far as there are rows.
    async fn ends(&mut self) -> Result<CheckEnds, RepositoryFailure> {
        let cause = match unless_away(self.check.repository.ends().await)? {
            Ok(ends) => return Ok(ends),
            Err(cause) => cause,
        };
        self.tell(Subject::Database, Fault::DatabaseDamaged(cause));
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
                    self.tell_all(&subject, credential::faults(&read));
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
                    let mut afresh = Issuers::default();
                    let faults = self.version_faults(&read, &mut afresh).await?;
                    let faults = faults.into_iter().map(|fault| match fault {
                        Fault::KeyUnknown(key_id) if uncompared.contains(&key_id) => {
                            Fault::KeyNotCompared(key_id)
                        }
                        fault => fault,
                    });
                    self.tell_all(&subject_of(&read), faults.collect());
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
        let judge = VersionJudge {
            repository: self.check.repository.as_ref(),
            sealer: self.check.sealer.as_ref(),
            certificates: self.check.certificates.as_ref(),
        };
        judge.faults(version, issuers).await
    }

    /// A server may have begun to use a key that had no record when the check began, and another one may have encrypted old
    /// versions with it since. Those are returned of which it can't be told at present whether they are configured.
    async fn recognise_keys(&self, faults: &[Fault]) -> Result<Vec<Uuid>, RepositoryFailure> {
        let mut uncompared = Vec::new();
        for fault in faults {
            let Fault::KeyUnknown(key_id) = fault else {
                continue;
            };
            match self.check.sealer.recognise(*key_id).await {
                Ok(()) => {}
                Err(RecognitionFailure::Repository(failure)) => {
                    if unless_away::<()>(Err(failure))?.is_err() {
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
                    self.tell(Subject::Database, fault);
                }
            }
        }
        self.wrongly_indexed().await?;
        self.progress(CheckPart::NameIndex, (end, end));
        Ok(())
    }

    async fn wrongly_indexed(&mut self) -> Result<(), RepositoryFailure> {
        let repository = Arc::clone(&self.check.repository);
        let wrong = match unless_away(repository.wrongly_indexed().await)? {
            Ok(wrong) => wrong,
            Err(cause) => {
                let fault = Fault::Unreadable {
                    table: "credential_name",
                    after: 0,
                    until: None,
                    cause,
                };
                self.tell(Subject::Database, fault);
                return Ok(());
            }
        };
        for sequence in wrong {
            let again = repository.credentials(alone(sequence)).await;
            for read in self.again("credential", sequence, again)? {
                // What is not indexed at all was told with the credential.
                if read.is_indexed {
                    self.tell(Subject::Credential(read.name), Fault::NameNotIndexed);
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
                // A permission is one row: there is nothing beside it that could change meanwhile.
                self.tell_all(&Subject::Permission(read.id), permission::faults(&read));
            }
        }
        self.progress(CheckPart::Permissions, (end, end));
        Ok(())
    }

    /// The rows that were read. What could not be is told.
    fn readable<T>(&mut self, batch: Batch<T>) -> Vec<T> {
        self.tell_all(&Subject::Database, batch.unreadable);
        batch.rows
    }

    /// The row that was read once more. That it can't be is told.
    fn again<T>(
        &mut self,
        table: &'static str,
        sequence: i64,
        read: Result<Vec<T>, RepositoryFailure>,
    ) -> Result<Vec<T>, RepositoryFailure> {
        let cause = match unless_away(read)? {
            Ok(rows) => return Ok(rows),
            Err(cause) => cause,
        };
        let fault = Fault::Unreadable {
            table,
            after: sequence - 1,
            until: Some(sequence),
            cause,
        };
        self.tell(Subject::Database, fault);
        Ok(Vec::new())
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

/// How many short rows are read at once.
const ROWS_MAX: u32 = 500;

/// How many versions are read at once: each may have 64 KiB and more.
const VERSIONS_MAX: u32 = 100;
