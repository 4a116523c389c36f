//! The records by which configured encryption keys are recognised.

use std::{collections::HashSet, sync::Arc};

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use keywright_core::ports::{EncryptionKeyRepository, RepositoryFailure};
use uuid::Uuid;

use crate::{
    connections::{Ended, Transaction},
    database::Pools,
    row::{Row, column, count, small},
    statement::statement,
};

/// The records of encryption keys in a database.
#[derive(Clone)]
pub struct SqlEncryptionKeyRepository {
    pools: Pools,
}

/// One encryption key, without the key: what it takes to derive it again, and to see that it is the right one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EncryptionKeyRow {
    /// What is encrypted names its key by this id.
    pub id: Uuid,
    /// How the key comes about: `password`, `raw` or `kms`.
    pub provider: String,
    /// The salt and the number of iterations of its derivation, where it is derived.
    pub derivation: Option<(Vec<u8>, u32)>,
    /// The key as a key management service has encrypted it, where one has.
    pub wrapped_key: Option<Vec<u8>>,
    /// The nonce of the canary.
    pub canary_nonce: Vec<u8>,
    /// The canary, encrypted with the key.
    pub canary_ciphertext: Vec<u8>,
    /// When the key was first active. Milliseconds are kept.
    pub created_at: DateTime<Utc>,
}

impl SqlEncryptionKeyRepository {
    pub(crate) fn new(pools: Pools) -> Self {
        Self { pools }
    }

    /// All records, oldest first.
    ///
    /// # Errors
    /// When the database can't answer.
    pub async fn all(&self) -> Result<Vec<EncryptionKeyRow>, RepositoryFailure> {
        self.pools
            .reader
            .fetch_all(statement(statements::ALL_KEYS))
            .await?
            .iter()
            .map(key_of)
            .collect()
    }

    /// Adds a record, if the keys with these ids are still all that have one; says whether it did. So of several servers
    /// that find their common key without a record, one adds it. It must be on disk before anything is encrypted with its
    /// key, and is when this returns.
    ///
    /// # Errors
    /// When the database can't answer; then nothing was written, unless the answer to the commit was lost.
    pub async fn add(
        &self,
        key: &EncryptionKeyRow,
        known: &HashSet<Uuid>,
    ) -> Result<bool, RepositoryFailure> {
        let key = Arc::new((key.clone(), known.clone()));
        let writer = &self.pools.writer;
        let adding = writer.transaction(move |transaction| add_once(transaction, Arc::clone(&key)));
        adding.await
    }

    /// Counts encryptions of a key that may follow, unless there would be more than `count_max`. Returns how many are counted
    /// then, on all servers, and `None` where there would be more.
    ///
    /// # Errors
    /// When the database can't answer. They may have been counted all the same.
    pub async fn reserve_encryptions(
        &self,
        key_id: Uuid,
        count: u64,
        count_max: u64,
    ) -> Result<Option<u64>, RepositoryFailure> {
        let number = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
        let reserve = statement(statements::RESERVE_ENCRYPTIONS)
            .bind(key_id)
            .bind(number(count))
            .bind(number(count_max));
        let rows = self.pools.writer.fetch_all(reserve).await?;
        let encryptions = rows
            .first()
            .map(|row| column!(row, "encryption_key_usage", "encryptions"))
            .transpose()?;
        Ok(encryptions.map(self::count))
    }

    /// The ids of those keys under which at least one version is encrypted.
    ///
    /// # Errors
    /// When the database can't answer.
    pub async fn in_use(&self) -> Result<Vec<Uuid>, RepositoryFailure> {
        self.pools
            .reader
            .fetch_all(statement(statements::KEYS_IN_USE))
            .await?
            .iter()
            .map(|row| column!(row, "encryption_key", "id"))
            .collect()
    }
}

async fn add_once(
    mut transaction: Transaction,
    key: Arc<(EncryptionKeyRow, HashSet<Uuid>)>,
) -> Result<Ended<bool>, RepositoryFailure> {
    let (key, known) = key.as_ref();
    let present: HashSet<Uuid> = transaction
        .fetch_all(statement(statements::KEY_IDS))
        .await?
        .iter()
        .map(|row| column!(row, "encryption_key", "id"))
        .collect::<Result<_, _>>()?;
    if present != *known {
        return transaction.conclude(false).await;
    }
    let (salt, iterations) = key.derivation.clone().unzip();
    let query = statement(statements::INSERT_KEY)
        .bind(key.id)
        .bind(key.provider.as_str())
        .bind(salt)
        .bind(iterations.map(i64::from))
        .bind(key.canary_nonce.as_slice())
        .bind(key.canary_ciphertext.as_slice())
        .bind(key.created_at.timestamp_millis())
        .bind(key.wrapped_key.clone());
    transaction.execute(query).await?;
    transaction.commit(true).await
}

#[async_trait]
impl EncryptionKeyRepository for SqlEncryptionKeyRepository {
    async fn versions_by_key(&self) -> Result<Vec<(Uuid, u64)>, RepositoryFailure> {
        self.pools
            .reader
            .fetch_all(statement(statements::VERSIONS_BY_KEY))
            .await?
            .iter()
            .map(|row| {
                let id = column!(row, "encryption_key", "id")?;
                Ok((id, count(column!(row, "credential_version", "versions")?)))
            })
            .collect()
    }

    async fn encryptions_by_key(&self) -> Result<Vec<(Uuid, u64)>, RepositoryFailure> {
        let reader = &self.pools.reader;
        let rows = reader.fetch_all(statement(statements::ENCRYPTIONS_BY_KEY));
        let usage = |row: &Row| {
            let id = column!(row, "encryption_key_usage", "encryption_key_id")?;
            let encryptions = column!(row, "encryption_key_usage", "encryptions")?;
            Ok((id, count(encryptions)))
        };
        rows.await?.iter().map(usage).collect()
    }
}

fn key_of(row: &Row) -> Result<EncryptionKeyRow, RepositoryFailure> {
    let salt: Option<Vec<u8>> = column!(row, "encryption_key", "salt")?;
    let iterations: Option<i64> = column!(row, "encryption_key", "iterations")?;
    let iterations = iterations
        .map(|number| small(number, "encryption_key.iterations"))
        .transpose()?;
    let created_at: i64 = column!(row, "encryption_key", "created_at")?;
    Ok(EncryptionKeyRow {
        id: column!(row, "encryption_key", "id")?,
        provider: column!(row, "encryption_key", "provider")?,
        wrapped_key: column!(row, "encryption_key", "wrapped_key")?,
        derivation: salt.zip(iterations),
        canary_nonce: column!(row, "encryption_key", "canary_nonce")?,
        canary_ciphertext: column!(row, "encryption_key", "canary_ciphertext")?,
        created_at: DateTime::from_timestamp_millis(created_at)
            .ok_or(RepositoryFailure::Inconsistent("encryption_key.created_at"))?,
    })
}

pub(crate) mod statements {
    //! The SQL. There is one row for each key that was ever active: reading them all is meant.

    pub(crate) const ALL_KEYS: &str = "
        select id, provider, salt, iterations, canary_nonce, canary_ciphertext, created_at, wrapped_key
        from encryption_key order by created_at, id";

    pub(crate) const INSERT_KEY: &str = "
        insert into encryption_key
            (id, provider, salt, iterations, canary_nonce, canary_ciphertext, created_at, wrapped_key)
        values ($1, $2, $3, $4, $5, $6, $7, $8)";

    pub(crate) const ENCRYPTIONS_BY_KEY: &str =
        "select u.encryption_key_id, u.encryptions from encryption_key_usage u";

    /// No row comes back where there would be too many.
    pub(crate) const RESERVE_ENCRYPTIONS: &str = "
        insert into encryption_key_usage (encryption_key_id, encryptions) values ($1, $2)
        on conflict (encryption_key_id) do update set encryptions = encryption_key_usage.encryptions + excluded.encryptions
        where encryption_key_usage.encryptions + excluded.encryptions <= $3
        returning encryptions";

    pub(crate) const KEY_IDS: &str = "select k.id from encryption_key k";

    /// Not with `exists`, which PostgreSQL may turn into a join that reads the index of all versions.
    pub(crate) const KEYS_IN_USE: &str = "
        select k.id from encryption_key k where (
            select v.encryption_key_id from credential_version v where v.encryption_key_id = k.id limit 1
        ) is not null";

    pub(crate) const VERSIONS_BY_KEY: &str = "
        select k.id, (
            select count(*) from credential_version v where v.encryption_key_id = k.id
        ) as versions
        from encryption_key k";
}
