//! The records that identify configured encryption keys, and the versions that a rotation encrypts with another key.

use std::{collections::HashSet, sync::Arc};

use async_trait::async_trait;
use chrono::DateTime;
use keywright_core::{
    credential::CredentialName,
    ports::{
        EncryptionKeyRepository, Envelope, KeyDerivation, KeyRecord, KeyRotationRepository,
        PasswordDerivation, RepositoryError, ResealedVersion, SealedVersion,
    },
};
use uuid::Uuid;

use crate::{
    Database,
    connections::{Ended, Transaction},
    statement::{Row, Statement, built_statement, column, count, statement},
};

impl Database {
    /// Returns the records of all encryption keys, oldest first.
    pub async fn encryption_keys(&self) -> Result<Vec<KeyRecord>, RepositoryError> {
        self.reader
            .fetch_all(statement(statements::ALL_KEYS).short())
            .await?
            .iter()
            .map(key_of)
            .collect()
    }

    /// Adds the record of a key if `known` still contains exactly the ids of the recorded keys. Returns whether it added the record: if
    /// several servers start with the same new key, only one of them adds it. When this returns, the record is on disk. Nothing
    /// may be encrypted with the key before that.
    ///
    /// # Errors
    /// If the database fails; then nothing was written, unless the response to the commit was lost.
    pub async fn add_encryption_key(
        &self,
        key: &KeyRecord,
        known: &HashSet<Uuid>,
    ) -> Result<bool, RepositoryError> {
        let key = Arc::new((key.clone(), known.clone()));
        let writer = &self.writer;
        let adding = writer.transaction(move |transaction| add_once(transaction, Arc::clone(&key)));
        adding.await
    }

    /// Reserves encryptions with a key, unless their number would exceed `count_max`. Returns the number reserved on all
    /// servers, or `None` if it would be exceeded.
    ///
    /// # Errors
    /// If the database fails. The encryptions may have been reserved nevertheless.
    pub async fn reserve_encryptions(
        &self,
        key_id: Uuid,
        count: u64,
        count_max: u64,
    ) -> Result<Option<u64>, RepositoryError> {
        let number = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
        let reserve = statement(statements::RESERVE_ENCRYPTIONS)
            .bind(key_id)
            .bind(number(count))
            .bind(number(count_max));
        let rows = self.writer.fetch_all(reserve).await?;
        let encryptions = rows
            .first()
            .map(|row| column!(row, "encryption_key_usage", "encryptions"))
            .transpose()?;
        Ok(encryptions.map(self::count))
    }

    /// Runs a statement that records the start of a server, isolated from other starts.
    async fn write_activation(
        &self,
        sql: &'static str,
        key_id: Uuid,
    ) -> Result<(), RepositoryError> {
        let query = statement(sql).bind(key_id);
        self.writer.serializable(query).await.map(drop)
    }
}

async fn add_once(
    mut transaction: Transaction,
    key: Arc<(KeyRecord, HashSet<Uuid>)>,
) -> Result<Ended<bool>, RepositoryError> {
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
    let (salt, iterations, wrapped_key) = match &key.derivation {
        KeyDerivation::Password(PasswordDerivation { salt, iterations }) => {
            (Some(salt.as_slice()), Some(i64::from(*iterations)), None)
        }
        KeyDerivation::Raw => (None, None, None),
        KeyDerivation::Wrapped(wrapped_key) => (None, None, Some(wrapped_key.as_slice())),
    };
    let query = statement(statements::INSERT_KEY)
        .bind(key.id)
        .bind(<&str>::from(&key.derivation))
        .bind(salt)
        .bind(iterations)
        .bind(key.canary_nonce.as_slice())
        .bind(key.canary_ciphertext.as_slice())
        .bind(key.created_at.timestamp_millis())
        .bind(wrapped_key);
    transaction.execute(query).await?;
    transaction.commit(true).await
}

#[async_trait]
impl EncryptionKeyRepository for Database {
    async fn versions_by_key(&self) -> Result<Vec<(Uuid, u64)>, RepositoryError> {
        self.reader
            .fetch_all(statement(statements::VERSIONS_BY_KEY).bind(Uuid::nil()))
            .await?
            .iter()
            .map(|row| {
                let id = column!(row, "encryption_key", "id").unwrap_or_default();
                Ok((id, count(column!(row, "credential_version", "versions")?)))
            })
            .collect()
    }

    async fn encryptions_by_key(&self) -> Result<Vec<(Uuid, u64)>, RepositoryError> {
        let reader = &self.reader;
        let rows = reader.fetch_all(statement(statements::ENCRYPTIONS_BY_KEY));
        let usage = |row: &Row| {
            let id = column!(row, "encryption_key_usage", "encryption_key_id")?;
            let encryptions = column!(row, "encryption_key_usage", "encryptions")?;
            Ok((id, count(encryptions)))
        };
        rows.await?.iter().map(usage).collect()
    }
}

fn key_of(row: &Row) -> Result<KeyRecord, RepositoryError> {
    let id = column!(row, "encryption_key", "id")?;
    let malformed = || RepositoryError::KeyRecordMalformed(id);
    let provider: String = column!(row, "encryption_key", "provider")?;
    let salt: Option<Vec<u8>> = column!(row, "encryption_key", "salt")?;
    let iterations: Option<i64> = column!(row, "encryption_key", "iterations")?;
    let wrapped_key = column!(row, "encryption_key", "wrapped_key")?;
    let derivation = match (provider.as_str(), salt.zip(iterations), wrapped_key) {
        ("password", Some((salt, iterations)), None) => {
            let iterations = u32::try_from(iterations).map_err(|_| malformed())?;
            KeyDerivation::Password(PasswordDerivation { salt, iterations })
        }
        ("raw", None, None) => KeyDerivation::Raw,
        ("kms", None, Some(wrapped_key)) => KeyDerivation::Wrapped(wrapped_key),
        _ => return Err(malformed()),
    };
    let created_at = column!(row, "encryption_key", "created_at")?;
    Ok(KeyRecord {
        id,
        derivation,
        canary_nonce: column!(row, "encryption_key", "canary_nonce")?,
        canary_ciphertext: column!(row, "encryption_key", "canary_ciphertext")?,
        created_at: DateTime::from_timestamp_millis(created_at).ok_or_else(malformed)?,
    })
}

#[async_trait]
impl KeyRotationRepository for Database {
    async fn activate(&self, key_id: Uuid) -> Result<(), RepositoryError> {
        self.write_activation(statements::ACTIVATE, key_id).await
    }

    async fn activate_new(&self, key_id: Uuid) -> Result<(), RepositoryError> {
        self.write_activation(statements::ACTIVATE_NEW, key_id)
            .await
    }

    async fn last_activated(&self) -> Result<Option<Uuid>, RepositoryError> {
        let query = statement(statements::LAST_ACTIVATED);
        let row = self.reader.fetch_optional(query).await?;
        row.map(|row| column!(row, "encryption_key_activation", "encryption_key_id"))
            .transpose()
    }

    async fn keys_in_use(&self) -> Result<Vec<Uuid>, RepositoryError> {
        let query = statement(statements::KEYS_IN_USE).bind(Uuid::nil());
        let rows = self.reader.fetch_all(query).await?;
        let id = |row: &Row| column!(row, "encryption_key", "id").unwrap_or_default();
        Ok(rows.iter().map(id).collect())
    }

    async fn versions_under(
        &self,
        key_id: Uuid,
        after_sequence: i64,
        count_max: u32,
    ) -> Result<Vec<SealedVersion>, RepositoryError> {
        let query = statement(statements::VERSIONS_UNDER_KEY)
            .bind(key_id)
            .bind(after_sequence)
            .bind(i64::from(count_max))
            .bind(BATCH_BYTES_MAX);
        let rows = self.reader.fetch_all(query).await?;
        rows.iter().map(sealed_version).collect()
    }

    /// Each statement is a transaction, so that transactions are short. On PostgreSQL it is not serializable, because it depends
    /// only on the rows that it changes. So its reads do not conflict with the transactions of requests.
    async fn replace_envelopes(
        &self,
        versions: &[ResealedVersion],
    ) -> Result<u64, RepositoryError> {
        let mut replaced = 0;
        for some in versions.chunks(VERSIONS_AT_ONCE) {
            let Some(first) = some.first() else {
                continue;
            };
            let sql = statements::replace_envelopes(some.len());
            let query = built_statement(sql).bind(first.envelope.key_id);
            let query = some.iter().fold(query, bind_version);
            replaced += self.writer.execute(query).await?;
        }
        Ok(replaced)
    }
}

fn bind_version(query: Statement, version: &ResealedVersion) -> Statement {
    query
        .bind(version.sequence)
        .bind(version.key_id_before)
        .bind(version.nonce_before.as_slice())
        .bind(version.envelope.nonce.as_slice())
        .bind(version.envelope.ciphertext.as_slice())
}

/// Decodes a version. Reads malformed columns as empty: then the version can't be decrypted, but does not fail its batch.
fn sealed_version(row: &Row) -> Result<SealedVersion, RepositoryError> {
    let name = column!(row, "credential", "name").unwrap_or_default();
    Ok(SealedVersion {
        sequence: column!(row, "credential_version", "sequence")?,
        id: column!(row, "credential_version", "id").unwrap_or_default(),
        name: CredentialName::from_stored(name),
        envelope: Envelope {
            key_id: column!(row, "credential_version", "encryption_key_id")?,
            nonce: column!(row, "credential_version", "nonce").unwrap_or_default(),
            ciphertext: column!(row, "credential_version", "ciphertext").unwrap_or_default(),
        },
    })
}

/// The maximum number of versions in a statement, each with five parameters. Preparing takes more than linear time.
const VERSIONS_AT_ONCE: usize = 200;

/// The maximum total length of a batch's ciphertexts, in bytes: the batch is decrypted and encrypted in memory. A single version may
/// be longer.
pub const BATCH_BYTES_MAX: i64 = 16 * 1_024 * 1_024;

pub(crate) mod statements {
    //! The SQL. There is one record and one activation for each key that was ever active, so reading all of them is fine.

    use crate::{credential::row::envelope, statement::placeholders};

    /// 2⁶². Servers count starts, so a larger ordinal is malformed. It is ignored: there might be no next one.
    macro_rules! ordinal_max {
        () => {
            "4611686018427387904"
        };
    }

    macro_rules! next_ordinal {
        () => {
            concat!(
                "(select coalesce(max(k.ordinal), 0) + 1 from encryption_key_activation k where k.ordinal < ",
                ordinal_max!(),
                ")"
            )
        };
    }

    pub(crate) const ALL_KEYS: &str = "
        select id, provider, salt, iterations, canary_nonce, canary_ciphertext, created_at, wrapped_key
        from encryption_key order by created_at, id";

    pub(crate) const INSERT_KEY: &str = "
        insert into encryption_key
            (id, provider, salt, iterations, canary_nonce, canary_ciphertext, created_at, wrapped_key)
        values ($1, $2, $3, $4, $5, $6, $7, $8)";

    pub(crate) const ENCRYPTIONS_BY_KEY: &str =
        "select u.encryption_key_id, u.encryptions from encryption_key_usage u";

    /// Returns no row if the limit would be exceeded.
    pub(crate) const RESERVE_ENCRYPTIONS: &str = "
        insert into encryption_key_usage (encryption_key_id, encryptions) values ($1, $2)
        on conflict (encryption_key_id) do update set encryptions = encryption_key_usage.encryptions + excluded.encryptions
        where encryption_key_usage.encryptions <= $3 - excluded.encryptions
        returning encryptions";

    pub(crate) const KEY_IDS: &str = "select k.id from encryption_key k";

    /// The keys of versions, with or without a record. Each step looks up the next key in the index of versions, so the cost does
    /// not depend on the number of versions. The parameter is the nil UUID, which malformed ids are decoded as.
    macro_rules! with_used {
        ($select:literal) => {
            concat!(
                "with recursive used (id) as (
                    select (
                        select v.encryption_key_id from credential_version v
                        where v.encryption_key_id >= $1 order by v.encryption_key_id limit 1
                    )
                    union all
                    select (
                        select v.encryption_key_id from credential_version v
                        where v.encryption_key_id > used.id order by v.encryption_key_id limit 1
                    )
                    from used where used.id is not null
                ) ",
                $select
            )
        };
    }

    pub(crate) const KEYS_IN_USE: &str =
        with_used!("select used.id from used where used.id is not null");

    pub(crate) const VERSIONS_BY_KEY: &str = with_used!(
        "select s.id, (
            select count(*) from credential_version v where v.encryption_key_id = s.id
        ) as versions
        from (select used.id from used where used.id is not null union select k.id from encryption_key k) s"
    );

    /// If the key is already the last activated key, it keeps its ordinal, so that servers that start with the same key write
    /// nothing.
    pub(crate) const ACTIVATE: &str = concat!(
        "insert into encryption_key_activation (encryption_key_id, ordinal) values ($1, ",
        next_ordinal!(),
        ") on conflict (encryption_key_id) do update set ordinal = excluded.ordinal
        where encryption_key_activation.ordinal < excluded.ordinal - 1
        or encryption_key_activation.ordinal > ",
        ordinal_max!()
    );

    pub(crate) const ACTIVATE_NEW: &str = concat!(
        "insert into encryption_key_activation (encryption_key_id, ordinal) values ($1, ",
        next_ordinal!(),
        ") on conflict (encryption_key_id) do nothing"
    );

    pub(crate) const LAST_ACTIVATED: &str = concat!(
        "select k.encryption_key_id from encryption_key_activation k where k.ordinal <= ",
        ordinal_max!(),
        " order by k.ordinal desc limit 1"
    );

    /// First sums up the lengths, without reading ciphertexts: a batch ends at the last version within the limit, and contains
    /// at least one version. A subquery reads the name, so that no plan joins all credentials.
    pub(crate) const VERSIONS_UNDER_KEY: &str = concat!(
        "select v.sequence, v.id, ",
        envelope!(),
        ", (
            select c.name from credential c where c.sequence = v.credential_sequence
        ) as name
        from credential_version v
        where v.encryption_key_id = $1 and v.sequence > $2 and v.sequence <= (
            select coalesce(max(case when summed.bytes <= $4 then summed.sequence end), min(summed.sequence))
            from (
                select measured.sequence, sum(measured.bytes) over (order by measured.sequence) as bytes
                from (
                    select m.sequence, length(m.ciphertext) as bytes from credential_version m
                    where m.encryption_key_id = $1 and m.sequence > $2
                    order by m.sequence limit $3
                ) measured
            ) summed
        )
        order by v.sequence"
    );

    /// Replaces the envelopes of `count` versions. The parameters are the new key, and for each version its sequence, its
    /// previous key and nonce, and its new nonce and ciphertext.
    pub(crate) fn replace_envelopes(count: usize) -> String {
        let version = |number: usize| format!("({})", placeholders(2 + number * COLUMNS, COLUMNS));
        let versions: Vec<String> = (0..count).map(version).collect();
        format!(
            "with resealed (sequence, key_before, nonce_before, nonce, ciphertext) as (values {})
             update credential_version
             set encryption_key_id = $1, nonce = resealed.nonce, ciphertext = resealed.ciphertext
             from resealed
             where credential_version.sequence = resealed.sequence
             and credential_version.encryption_key_id = resealed.key_before
             and credential_version.nonce = resealed.nonce_before",
            versions.join(", ")
        )
    }

    const COLUMNS: usize = 5;
}
