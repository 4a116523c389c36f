//! Adding versions of several credentials in one PostgreSQL transaction.
//!
//! The slow part of a commit is the flush of the disk, and serializable transactions that look up neighbouring names conflict.
//! So versions that arrive during a write are added together, by one read-committed transaction that locks the rows of their
//! credentials and skips rows that are already locked. For the versions that [`is_batched`] accepts, this is as safe as a
//! serializable transaction; `host/docs/decisions/storage.md` explains why. If the preconditions of a version are not met, or its
//! batch conflicts with another transaction, its own serializable transaction adds it or determines why it can't be added.

use std::{
    collections::{HashMap, HashSet},
    error::Error,
    fmt,
    hash::{DefaultHasher, Hash, Hasher},
    sync::Arc,
    time::Duration,
};

use keywright_core::{
    credential::{CredentialName, CredentialType},
    ports::{AppendCondition, RepositoryError},
};
use tokio::sync::{mpsc, oneshot};
use uuid::Uuid;

use super::{
    append::{AddedVersion, Addition, CredentialRow, holds, postgres_add_versions, rows},
    row,
};
use crate::{
    connections::{Ended, Queued, Transaction, WaitCounter, Writer},
    error::{is_conflict, sequence_behind},
    statement::{StatementOfMany, column, placeholders},
};

/// Collects versions to add, and adds them in batches.
#[derive(Clone)]
pub(crate) struct AppendBatches {
    /// The number of callers bounds the length of the queues.
    ///
    /// There is one queue for each concurrent batch, and all versions of a name use the same queue. So two batches of one server
    /// never wait for the same row.
    queues: Arc<[mpsc::UnboundedSender<Queued<Pending>>]>,
    wait_max: Duration,
    waiting: Arc<WaitCounter>,
}

/// A version to add.
struct Pending {
    addition: Arc<Addition>,
    /// `None` if the version needs a transaction of its own. Nothing is written then.
    response: oneshot::Sender<Result<Option<AddedVersion>, BatchError>>,
}

/// Versions that are not in a batch yet.
struct Backlog {
    queue: mpsc::UnboundedReceiver<Queued<Pending>>,
    /// A version that exceeded a limit of the last batch or repeated a name. It begins the next batch.
    next: Option<Pending>,
}

/// The reason why nothing of a batch was written, unless the response to the commit was lost. All its versions share the cause.
#[derive(Clone, Debug)]
struct BatchError(Arc<RepositoryError>);

impl fmt::Display for BatchError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("could not add the versions of the batch")
    }
}

impl Error for BatchError {
    /// Skips the [`RepositoryError`], whose text would appear twice: the error of each version is a [`RepositoryError`], too.
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.source()
    }
}

impl AppendBatches {
    /// Starts the tasks that write batches. They end when the last clone is dropped. A version waits for at most `wait_max`
    /// until its batch begins.
    pub(crate) fn start(writer: &Writer, wait_max: Duration) -> Self {
        let queues = (0..CONCURRENT_BATCHES).map(|_| {
            let (queue, pending) = mpsc::unbounded_channel();
            let backlog = Backlog {
                queue: pending,
                next: None,
            };
            tokio::spawn(write_batches(writer.clone(), backlog));
            queue
        });
        Self {
            queues: queues.collect(),
            wait_max,
            waiting: Arc::default(),
        }
    }

    /// Adds a version. Returns `None` and writes nothing if it needs a transaction of its own.
    pub(super) async fn append(
        &self,
        addition: &Arc<Addition>,
    ) -> Result<Option<AddedVersion>, RepositoryError> {
        if !is_batched(addition) {
            return Ok(None);
        }
        let (response, outcome) = oneshot::channel();
        let addition = Arc::clone(addition);
        let queue = self.queues.get(queue_of(&addition, self.queues.len()));
        let (queued, caller) = self.waiting.queued(Pending { addition, response });
        // If the task has ended, there is no outcome.
        drop(queue.map(|queue| queue.send(queued)));
        let outcome = caller.outcome(outcome, self.wait_max).await?;
        outcome.map_err(|failed| RepositoryError::Unavailable(Box::new(failed)))
    }

    /// Returns the number of versions that wait for their batches.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.count()
    }
}

/// Returns whether a version may be added in a batch. Its preconditions then concern only its own credential. Any other transaction that
/// depends on this credential also writes it, or derives a value from it, which may become stale.
fn is_batched(addition: &Addition) -> bool {
    let version = &addition.version;
    let attributes = &version.attributes;
    let is_certificate = version.credential_type.as_str() == CredentialType::CERTIFICATE
        || attributes.certificate.is_some()
        || attributes.signed_by.is_some()
        || attributes.issuer.is_some();
    let reads_versions = match addition.condition {
        AppendCondition::Always
        | AppendCondition::CredentialIs(_)
        | AppendCondition::NewestIs(None) => !addition.unchanged.is_empty(),
        AppendCondition::NewestIs(Some(_)) => true,
    };
    !is_certificate && !reads_versions && !attributes.is_transitional && version.inputs.is_empty()
}

/// Writes batches until the queue is closed.
async fn write_batches(writer: Writer, mut backlog: Backlog) {
    while let Some(batch) = backlog.next_batch().await {
        let additions: Arc<[Arc<Addition>]> = batch
            .iter()
            .map(|pending| Arc::clone(&pending.addition))
            .collect();
        let appending = writer.read_committed(|transaction| append_all(transaction, additions));
        let mut responses = match appending.await {
            Ok(responses) => Ok(responses),
            // The batch was rolled back.
            Err(failure) if is_undone(&failure) => {
                writer.count_retry();
                Ok(HashMap::new())
            }
            Err(failure) => Err(BatchError(Arc::new(failure))),
        };
        for Pending { addition, response } in batch {
            let own = responses.as_mut();
            let own = own.map(|responses| responses.remove(&addition.version.id));
            // Fails only if the caller is gone.
            drop(response.send(own.map_err(|failed| failed.clone())));
        }
    }
}

/// Returns whether it is certain that nothing was written, and adding each version in its own transaction may succeed.
fn is_undone(failure: &RepositoryError) -> bool {
    is_conflict(failure) || !matches!(failure, RepositoryError::Unavailable(_))
}

impl Backlog {
    /// Waits for a version. Returns it and the versions queued behind it, up to the first version that exceeds a limit or repeats a
    /// name. The versions are in the order of their names, so that two batches that insert the same names can't deadlock.
    async fn next_batch(&mut self) -> Option<Vec<Pending>> {
        let mut batch = Vec::new();
        let (mut names, mut bytes) = (HashSet::new(), 0);
        loop {
            let pending = match self.next.take() {
                Some(pending) => Some(pending),
                None if batch.is_empty() => self.queue.recv().await?.begin(),
                None => match self.queue.try_recv() {
                    Ok(queued) => queued.begin(),
                    Err(_) => break,
                },
            };
            let Some(pending) = pending else {
                continue;
            };
            bytes += pending.addition.version.envelope.ciphertext.len();
            let is_new = names.insert(folded_name(&pending.addition));
            let fits = is_new && bytes <= BYTES_MAX && batch.len() < LENGTH_MAX;
            if !fits && !batch.is_empty() {
                self.next = Some(pending);
                break;
            }
            batch.push(pending);
        }
        batch.sort_by_cached_key(|pending| folded_name(&pending.addition));
        Some(batch)
    }
}

/// Returns the queue of a version's name.
fn queue_of(addition: &Addition, queues: usize) -> usize {
    let mut hasher = DefaultHasher::new();
    addition.version.name.folded().hash(&mut hasher);
    let hash = usize::try_from(hasher.finish() >> u32::BITS).unwrap_or_default();
    hash % queues
}

fn folded_name(addition: &Addition) -> String {
    addition.version.name.folded()
}

/// Adds the versions whose credentials are not locked and whose preconditions are met, and returns them by their ids.
async fn append_all(
    mut transaction: Transaction,
    additions: Arc<[Arc<Addition>]>,
) -> Result<Ended<HashMap<Uuid, AddedVersion>>, RepositoryError> {
    let mut locked = lock_credentials(&mut transaction, &additions).await?;
    let (mut fitting, mut absent) = (Vec::new(), Vec::new());
    for addition in additions.iter().map(Arc::as_ref) {
        match locked.remove(&folded_name(addition)) {
            Some(Some(credential)) if fits(addition, &credential) => {
                fitting.push((addition, credential));
            }
            None if holds(addition.condition, None) => absent.push(addition),
            _ => {}
        }
    }
    fitting.extend(insert_credentials(&mut transaction, absent).await?);
    let added = insert_versions(&mut transaction, fitting).await?;
    transaction.commit(added).await
}

/// Returns whether a version can be added to an existing credential, whose latest version has not been read.
fn fits(addition: &Addition, credential: &CredentialRow) -> bool {
    let version = &addition.version;
    credential.credential_type == version.credential_type
        && credential.name.as_str() == version.name.as_str()
        && !matches!(addition.condition, AppendCondition::NewestIs(_))
        && holds(addition.condition, Some(credential))
}

/// Locks the existing credentials and returns them by folded name. No other transaction changes or deletes them until this one
/// ends. `None` represents a credential that another transaction has locked: the batch does not wait for it.
async fn lock_credentials(
    transaction: &mut Transaction,
    additions: &[Arc<Addition>],
) -> Result<HashMap<String, Option<CredentialRow>>, RepositoryError> {
    let names = additions.iter().map(|addition| folded_name(addition));
    let query = LOCK_CREDENTIALS.bind([], names.collect::<Vec<_>>().iter().map(String::as_str));
    let mut credentials = HashMap::new();
    for row in transaction.fetch_all(query).await? {
        let sequence: Option<i64> = column!(row, "credential", "sequence")?;
        let credential = match sequence {
            Some(sequence) => Some(CredentialRow {
                sequence,
                id: column!(row, "credential", "id")?,
                name: CredentialName::from_stored(column!(row, "credential", "name")?),
                credential_type: row::credential_type(&row)?,
                newest_version_id: None,
            }),
            None => None,
        };
        credentials.insert(column!(row, "credential", "name_folded")?, credential);
    }
    Ok(credentials)
}

/// Inserts the credentials that no other transaction has inserted in the meantime.
async fn insert_credentials<'a>(
    transaction: &mut Transaction,
    absent: Vec<&'a Addition>,
) -> Result<Vec<(&'a Addition, CredentialRow)>, RepositoryError> {
    if absent.is_empty() {
        return Ok(Vec::new());
    }
    let with_ids = absent
        .into_iter()
        .map(|addition| (addition.identifiers.fresh(), addition));
    let with_ids: Vec<(Uuid, &Addition)> = with_ids.collect();
    let (query, count) = INSERT_CREDENTIALS.with_placeholders(with_ids.len());
    // Unused rows have no id.
    let query = (0..count).fold(query, |query, row| {
        let (id, version) = with_ids
            .get(row)
            .map(|(id, addition)| (*id, &addition.version))
            .unzip();
        query
            .bind(id)
            .bind(version.map(|version| version.name.as_str()))
            .bind(version.map(|version| version.name.folded()))
            .bind(version.map(|version| version.credential_type.as_str()))
            .bind(version.map(|version| version.created_at.timestamp_millis()))
    });
    let mut by_id: HashMap<Uuid, &Addition> = with_ids.into_iter().collect();
    let mut inserted = Vec::new();
    for row in transaction.fetch_all(query).await? {
        let id = column!(row, "credential", "id")?;
        let sequence = column!(row, "credential", "sequence")?;
        if let Some(addition) = by_id.remove(&id) {
            let credential = CredentialRow {
                sequence,
                id,
                name: addition.version.name.clone(),
                credential_type: addition.version.credential_type.clone(),
                newest_version_id: None,
            };
            inserted.push((addition, credential));
        }
    }
    Ok(inserted)
}

async fn insert_versions(
    transaction: &mut Transaction,
    fitting: Vec<(&Addition, CredentialRow)>,
) -> Result<HashMap<Uuid, AddedVersion>, RepositoryError> {
    if fitting.is_empty() {
        return Ok(HashMap::new());
    }
    let versions = fitting
        .iter()
        .map(|(addition, credential)| (credential.sequence, &addition.version));
    let query = postgres_add_versions(&versions.collect::<Vec<_>>(), false);
    let mut sequences = HashMap::new();
    for row in transaction.fetch_all(query).await? {
        let id: Uuid = column!(row, "credential_version", "id")?;
        let sequence: i64 = column!(row, "credential_version", "sequence")?;
        sequences.insert(id, sequence);
    }
    let added = fitting.into_iter().map(|(addition, credential)| {
        let id = addition.version.id;
        let sequence = sequences.remove(&id).ok_or_else(sequence_behind)?;
        Ok((
            id,
            AddedVersion {
                sequence,
                credential,
            },
        ))
    });
    added.collect()
}

/// The maximum number of versions in a transaction, and of bytes of their ciphertexts. A single version may be longer.
const LENGTH_MAX: usize = 64;
const BYTES_MAX: usize = 4 * 1_024 * 1_024;

/// The number of concurrent batches: one is prepared while the disk flushes the other.
const CONCURRENT_BATCHES: usize = 2;

/// Returns the SQL of both statements, for the test of their plans.
#[cfg(test)]
pub(crate) fn append_batches(count: usize) -> [String; 2] {
    [&LOCK_CREDENTIALS, &INSERT_CREDENTIALS].map(|statement| statement.text(count))
}

static LOCK_CREDENTIALS: StatementOfMany = StatementOfMany::new(lock_credentials_sql);
static INSERT_CREDENTIALS: StatementOfMany = StatementOfMany::new(insert_credentials_sql);

/// Locks rows in the order of their names. Other transactions may still reference them. If another transaction has locked a row,
/// only its name is returned.
fn lock_credentials_sql(count: usize) -> String {
    let names = placeholders(1, count);
    format!(
        "with locked as (
             select c.sequence, c.id, c.name, c.name_folded, c.credential_type from credential c
             where c.name_folded in ({names}) order by c.name_folded for no key update skip locked
         )
         select c.name_folded, l.sequence, l.id, l.name, l.credential_type
         from credential c left join locked l on l.name_folded = c.name_folded
         where c.name_folded in ({names})"
    )
}

/// Inserts credentials, except credentials whose names exist by now.
fn insert_credentials_sql(count: usize) -> String {
    format!(
        "insert into credential (id, name, name_folded, credential_type, created_at)
         select new.id, new.name, new.name_folded, new.credential_type, new.created_at
         from (values {}) as new (id, name, name_folded, credential_type, created_at)
         where new.id is not null
         on conflict (name_folded) do nothing returning sequence, id",
        rows(count, &["uuid", "text", "text", "text", "bigint"])
    )
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;
    use keywright_core::{
        credential::{InputVersion, VersionAttributes},
        ports::{Envelope, NewVersion, ReadVersions, VersionSelection},
    };

    use super::*;
    use crate::database::NoIdentifiers;

    fn addition(name: &str, ciphertext_bytes: usize) -> Addition {
        Addition {
            identifiers: Arc::new(NoIdentifiers),
            version: NewVersion {
                id: Uuid::nil(),
                name: CredentialName::parse(name).unwrap(),
                credential_type: CredentialType::parse("value").unwrap(),
                created_at: DateTime::UNIX_EPOCH,
                attributes: VersionAttributes::default(),
                inputs: Vec::new(),
                envelope: Envelope {
                    key_id: Uuid::nil(),
                    nonce: Vec::new(),
                    ciphertext: vec![0; ciphertext_bytes],
                },
            },
            condition: AppendCondition::Always,
            unchanged: Vec::new(),
        }
    }

    /// Returns the names in each batch, if all these versions are queued when the first batch begins.
    async fn batches(additions: impl IntoIterator<Item = Addition>) -> Vec<Vec<String>> {
        let waiting = WaitCounter::default();
        let (queue, pending) = mpsc::unbounded_channel();
        let mut callers = Vec::new();
        for addition in additions {
            let (response, _) = oneshot::channel();
            let addition = Arc::new(addition);
            let (queued, caller) = waiting.queued(Pending { addition, response });
            queue.send(queued).unwrap();
            callers.push(caller);
        }
        drop(queue);
        let mut backlog = Backlog {
            queue: pending,
            next: None,
        };
        let mut batches = Vec::new();
        while let Some(batch) = backlog.next_batch().await {
            let names = batch.iter().map(|pending| folded_name(&pending.addition));
            batches.push(names.collect());
        }
        assert_eq!(waiting.count(), 0);
        batches
    }

    #[tokio::test]
    async fn batches_are_sorted_by_name_and_repeat_no_name() {
        let names = ["/c", "/a", "/b", "/A", "/d"];
        let batches = batches(names.map(|name| addition(name, 1))).await;
        assert_eq!(batches, [vec!["/a", "/b", "/c"], vec!["/a", "/d"]]);
    }

    #[tokio::test]
    async fn the_versions_and_bytes_of_a_batch_are_limited() {
        let lengths = |batches: Vec<Vec<String>>| -> Vec<usize> {
            batches.iter().map(Vec::len).collect::<Vec<_>>()
        };
        let many = (0..=LENGTH_MAX).map(|number| addition(&format!("/{number}"), 1));
        assert_eq!(lengths(batches(many).await), [LENGTH_MAX, 1]);
        let full = [BYTES_MAX - 1, 1].map(|bytes| addition(&format!("/{bytes}"), bytes));
        assert_eq!(lengths(batches(full).await), [2]);
        let beyond =
            [BYTES_MAX, 1, BYTES_MAX + 1].map(|bytes| addition(&format!("/{bytes}"), bytes));
        assert_eq!(lengths(batches(beyond).await), [1, 1, 1]);
    }

    #[test]
    fn a_version_that_depends_on_other_versions_is_not_batched() {
        assert!(is_batched(&addition("/a", 1)));
        let mut transitional = addition("/a", 1);
        transitional.version.attributes.is_transitional = true;
        let mut certificate = addition("/a", 1);
        certificate.version.credential_type =
            CredentialType::parse(CredentialType::CERTIFICATE).unwrap();
        let mut signed = addition("/a", 1);
        signed.version.attributes.signed_by = Some(CredentialName::parse("/ca").unwrap());
        let mut newest = addition("/a", 1);
        newest.condition = AppendCondition::NewestIs(Some(Uuid::nil()));
        let mut reading = addition("/a", 1);
        reading.unchanged.push(ReadVersions {
            name: CredentialName::parse("/ca").unwrap().lookup(),
            selection: VersionSelection::Current,
            versions: Vec::new(),
        });
        let mut derived = addition("/a", 1);
        derived.version.inputs.push(InputVersion {
            pointer: "/b".to_owned(),
            name: CredentialName::parse("/b").unwrap(),
            version_id: Uuid::nil(),
        });
        for addition in [transitional, certificate, signed, newest, reading, derived] {
            assert!(!is_batched(&addition));
        }
    }
}
