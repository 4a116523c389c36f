//! Tests the check with rows in memory. Some rows change before they are read again.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use async_trait::async_trait;
use chrono::DateTime;
use keywright_core::{
    Secret,
    check::{Check, CheckObserver, CheckProgress, CheckSummary, Finding},
    credential::{CredentialName, CredentialType, StoredVersion, VersionAttributes},
    ports::{
        CheckEnds, CheckRepository, CheckedCredential, CheckedIndexEntry, CheckedPermission,
        CheckedRow, CheckedVersion, Envelope, KeyStatus, PointedVersion, RecognitionError,
        RepositoryError, SealContext, SealError, Sealer, SequenceRange,
    },
};
use uuid::Uuid;

use crate::fakes::CredulousCertificates;

#[tokio::test]
async fn every_row_up_to_the_end_is_read_once_in_batches() {
    let repository = Rows {
        credentials: 1_234,
        versions: 345,
        ..Rows::default()
    };
    let (found, outcome, ranges) = run(repository).await;
    assert_eq!(found, Vec::<String>::new());
    let summary = outcome.unwrap();
    assert_eq!((summary.credentials, summary.versions), (1_234, 345));
    assert!(ranges.iter().all(|range| range.count_max <= 500));
    assert_eq!(ranges.len(), 3 + 4);
}

#[tokio::test]
async fn a_fault_that_is_gone_on_the_second_read_is_not_reported() {
    for (is_wrong, findings) in [(Wrong::Never, 0), (Wrong::AtFirst, 0), (Wrong::Always, 2)] {
        let repository = Rows {
            credentials: 3,
            versions: 3,
            is_wrong,
            ..Rows::default()
        };
        let (found, outcome, _) = run(repository).await;
        assert_eq!(found.len(), findings, "{found:?}");
        assert_eq!(outcome.unwrap().findings, findings as u64);
    }
}

#[tokio::test]
async fn malformed_plaintext_is_reported() {
    for (plaintext, kinds) in [
        ("{\"value\":\"v\"}", &[][..]),
        ("{\"value\":1}", &["value_malformed"]),
        ("{\"value\":", &["content_malformed"]),
        ("", &["content_malformed"]),
        (
            "{\"value\":\"v\",\"parameters\":[]}",
            &["content_malformed"],
        ),
    ] {
        let repository = Rows {
            versions: 1,
            plaintext,
            ..Rows::default()
        };
        let (found, ..) = run(repository).await;
        assert_eq!(found, kinds, "{plaintext}");
    }
}

#[tokio::test]
async fn a_new_key_is_recognized_before_it_is_reported() {
    for (key, kinds) in [
        (NEW_KEY, &[][..]),
        (UNKNOWN_KEY, &["key_unknown"; 4]),
        (KEY_OF_UNAVAILABLE_PLUGIN, &["key_not_compared"; 4]),
    ] {
        let repository = Rows {
            versions: 4,
            key,
            ..Rows::default()
        };
        let (found, ..) = run(repository).await;
        assert_eq!(found, kinds);
    }
}

#[tokio::test]
async fn unreadable_rows_are_reported_and_the_rest_is_read() {
    let repository = Rows {
        credentials: 3,
        versions: 1,
        is_unreadable: true,
        ..Rows::default()
    };
    let (found, outcome, _) = run(repository).await;
    let damaged = "database_damaged";
    assert_eq!(found, [damaged, damaged, "unreadable"]);
    let summary = outcome.unwrap();
    assert_eq!((summary.credentials, summary.versions), (2, 1));
}

/// Runs a check. Returns the kinds of its findings, its result and the ranges that it read.
async fn run(
    rows: Rows,
) -> (
    Vec<String>,
    Result<CheckSummary, RepositoryError>,
    Vec<SequenceRange>,
) {
    let repository = Arc::new(rows);
    let check = Check {
        repository: repository.clone(),
        sealer: Arc::new(PlainText(Mutex::new(vec![KEY]))),
        certificates: Arc::new(CredulousCertificates),
    };
    let mut kinds = FindingKinds(Vec::new());
    let outcome = check.run(&mut kinds).await;
    let ranges = repository.ranges.lock().unwrap().clone();
    (kinds.0, outcome, ranges)
}

struct FindingKinds(Vec<String>);

impl CheckObserver for FindingKinds {
    fn found(&mut self, finding: Finding) {
        self.0.push(finding.fault.kind().to_owned());
    }

    fn progressed(&mut self, progress: CheckProgress) {
        assert!(progress.position <= progress.end);
    }
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Wrong {
    #[default]
    Never,
    AtFirst,
    Always,
}

/// Rows without faults, except that the second row of each table may be faulty.
struct Rows {
    credentials: i64,
    versions: i64,
    is_wrong: Wrong,
    plaintext: &'static str,
    key: Uuid,
    is_unreadable: bool,
    ranges: Mutex<Vec<SequenceRange>>,
}

impl Default for Rows {
    fn default() -> Self {
        Self {
            credentials: 0,
            versions: 0,
            is_wrong: Wrong::Never,
            plaintext: "{\"value\":\"v\"}",
            key: KEY,
            is_unreadable: false,
            ranges: Mutex::default(),
        }
    }
}

impl Rows {
    fn is_readable(&self) -> Result<(), RepositoryError> {
        if self.is_unreadable {
            return Err(RepositoryError::Query("the page is damaged".into()));
        }
        Ok(())
    }

    /// Returns the sequences of a range, none after `last`, each with a flag: whether the row is faulty in this read.
    fn read(&self, range: SequenceRange, last: i64) -> Vec<(i64, bool)> {
        self.ranges.lock().unwrap().push(range);
        let count = usize::try_from(range.count_max).unwrap();
        let is_first = range.count_max > 1;
        (range.after + 1..=range.until.min(last))
            .take(count)
            .map(|sequence| {
                let is_wrong = match self.is_wrong {
                    Wrong::Never => false,
                    Wrong::AtFirst => is_first,
                    Wrong::Always => true,
                };
                (sequence, is_wrong && sequence == 2)
            })
            .collect()
    }

    fn version(&self, sequence: i64, is_wrong: bool) -> CheckedVersion {
        let name = CredentialName::parse("/a").unwrap();
        let id = Uuid::from_u128(u128::try_from(sequence).unwrap());
        CheckedVersion {
            sequence,
            id,
            name: Some(name.as_str().to_owned()),
            stored: CheckedRow::Read(Box::new(StoredVersion {
                id,
                sequence,
                credential_id: Uuid::nil(),
                name,
                credential_type: CredentialType::parse(CredentialType::VALUE).unwrap(),
                created_at: DateTime::UNIX_EPOCH,
                attributes: VersionAttributes::default(),
                envelope: Envelope {
                    key_id: self.key,
                    nonce: Vec::new(),
                    ciphertext: self.plaintext.as_bytes().to_vec(),
                },
            })),
            signed_by_folded: None,
            inputs: BTreeMap::new(),
            has_key_record: !is_wrong,
        }
    }
}

fn credential(sequence: i64, is_wrong: bool) -> CheckedCredential {
    let version = PointedVersion {
        sequence: Some(sequence),
        ..PointedVersion::default()
    };
    CheckedCredential {
        sequence,
        name: "/A".to_owned(),
        name_folded: "/a".to_owned(),
        credential_type: "value".to_owned(),
        newest: version,
        newest_found: version,
        current: version,
        current_found: version,
        transitional_count: 0,
        is_indexed: !is_wrong,
    }
}

#[async_trait]
impl CheckRepository for Rows {
    async fn schema_differences(&self) -> Result<Vec<String>, RepositoryError> {
        Ok(Vec::new())
    }

    async fn damage(&self) -> Result<Vec<String>, RepositoryError> {
        self.is_readable().map(|()| Vec::new())
    }

    async fn ends(&self) -> Result<CheckEnds, RepositoryError> {
        self.is_readable().map(|()| CheckEnds {
            credentials: self.credentials,
            versions: self.versions,
            ..CheckEnds::default()
        })
    }

    async fn credentials(
        &self,
        range: SequenceRange,
    ) -> Result<Vec<CheckedCredential>, RepositoryError> {
        // The second row is on a damaged page.
        if (range.after..range.until).contains(&1) {
            self.is_readable()?;
        }
        let read = self.read(range, self.credentials).into_iter();
        Ok(read
            .map(|(sequence, wrong)| credential(sequence, wrong))
            .collect())
    }

    async fn versions(&self, range: SequenceRange) -> Result<Vec<CheckedVersion>, RepositoryError> {
        let read = self.read(range, self.versions).into_iter();
        let versions = read.map(|(sequence, wrong)| self.version(sequence, wrong));
        Ok(versions.collect())
    }

    async fn version_by_id(&self, _: Uuid) -> Result<Option<CheckedVersion>, RepositoryError> {
        Ok(None)
    }

    async fn indexed_names(
        &self,
        _: SequenceRange,
    ) -> Result<Vec<CheckedIndexEntry>, RepositoryError> {
        Ok(Vec::new())
    }

    async fn wrongly_indexed(&self) -> Result<Vec<i64>, RepositoryError> {
        Ok(Vec::new())
    }

    async fn permissions(
        &self,
        _: SequenceRange,
    ) -> Result<Vec<CheckedPermission>, RepositoryError> {
        Ok(Vec::new())
    }
}

/// A sealer that does not encrypt. It has some keys, and can recognize one more.
struct PlainText(Mutex<Vec<Uuid>>);

#[async_trait]
impl Sealer for PlainText {
    async fn seal(&self, _: SealContext<'_>, _: &Secret) -> Result<Envelope, SealError> {
        Err(SealError::SealingFailed)
    }

    fn open(&self, _: SealContext<'_>, envelope: &Envelope) -> Result<Secret, SealError> {
        if !self.0.lock().unwrap().contains(&envelope.key_id) {
            return Err(SealError::KeyUnknown(envelope.key_id));
        }
        let text = String::from_utf8(envelope.ciphertext.clone());
        text.map(Secret::new).map_err(|_| SealError::NotAuthentic)
    }

    fn status(&self, _: Uuid) -> KeyStatus {
        KeyStatus::Active
    }

    async fn recognize(&self, key_id: Uuid) -> Result<(), RecognitionError> {
        match key_id {
            NEW_KEY => self.0.lock().unwrap().push(key_id),
            KEY_OF_UNAVAILABLE_PLUGIN => {
                return Err(SealError::KeyManagementUnavailable(key_id).into());
            }
            _ => {}
        }
        Ok(())
    }
}

const KEY: Uuid = Uuid::from_u128(1);
const NEW_KEY: Uuid = Uuid::from_u128(2);
const UNKNOWN_KEY: Uuid = Uuid::from_u128(3);
const KEY_OF_UNAVAILABLE_PLUGIN: Uuid = Uuid::from_u128(4);
