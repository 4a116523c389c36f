//! The way through everything that is stored, a batch after the other.

use std::sync::Arc;

use super::{
    Check, CheckObserver, CheckPart, CheckProgress, CheckSummary, Fault, Finding, Subject,
    credential, issuers::Issuers, permission, version::VersionJudge,
};
use crate::ports::{CheckedVersion, RepositoryFailure, Stretch};

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
        let ends = self.check.repository.ends().await?;
        self.credentials(ends.credentials).await?;
        self.versions(ends.versions).await?;
        self.name_index(ends.indexed_names).await?;
        self.permissions(ends.permissions).await?;
        Ok(self.summary)
    }

    async fn database(&mut self) -> Result<(), RepositoryFailure> {
        self.progress(CheckPart::Database, 0, 1);
        for line in self.check.repository.damage().await? {
            self.tell(Subject::Database, Fault::DatabaseDamaged(line));
        }
        self.progress(CheckPart::Database, 1, 1);
        Ok(())
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
        let repository = Arc::clone(&self.check.repository);
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
                let faults = self.version_faults(read, &mut issuers).await?;
                if faults.is_empty() {
                    continue;
                }
                self.recognise_keys(&faults).await;
                for read in &repository.versions(alone(read.sequence)).await? {
                    let mut afresh = Issuers::default();
                    let faults = self.version_faults(read, &mut afresh).await?;
                    self.tell_all(&subject_of(read), faults);
                }
            }
        }
        self.progress(CheckPart::Versions, end, end);
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
    /// versions with it since.
    async fn recognise_keys(&self, faults: &[Fault]) {
        for fault in faults {
            if let Fault::KeyUnknown(key_id) = fault {
                // Where it can't be told, the key stays unknown, which is told.
                let _ = self.check.sealer.recognise(*key_id).await;
            }
        }
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
        let wrong = repository.wrongly_indexed().await;
        for sequence in self
            .readable("credential_name", 0, wrong)?
            .unwrap_or_default()
        {
            for read in repository.credentials(alone(sequence)).await? {
                // What is not indexed at all was told with the credential.
                if read.is_indexed {
                    self.tell(Subject::Credential(read.name), Fault::NameNotIndexed);
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
