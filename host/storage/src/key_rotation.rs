//! Versions, for encrypting them with another key.

use async_trait::async_trait;
use keywright_core::{
    credential::CredentialName,
    ports::{Envelope, KeyRotationRepository, RepositoryFailure, ResealedVersion, SealedVersion},
};
use uuid::Uuid;

use crate::{
    database::Pools,
    encryption_key::keys_in_use,
    row::{Row, column},
    statement::{Statement, built_statement, statement},
};

/// The versions of a database and its keys, for the rotation of keys.
#[derive(Clone)]
pub struct SqlKeyRotationRepository {
    pools: Pools,
}

impl SqlKeyRotationRepository {
    pub(crate) fn new(pools: Pools) -> Self {
        Self { pools }
    }

    /// Runs a statement that records the start of a server, isolated from other starts.
    async fn write_activation(
        &self,
        sql: &'static str,
        key_id: Uuid,
    ) -> Result<(), RepositoryFailure> {
        let query = statement(sql).bind(key_id);
        self.pools.writer.serializable(query).await.map(drop)
    }
}

#[async_trait]
impl KeyRotationRepository for SqlKeyRotationRepository {
    async fn activate(&self, key_id: Uuid) -> Result<(), RepositoryFailure> {
        self.write_activation(statements::ACTIVATE, key_id).await
    }

    async fn activate_new(&self, key_id: Uuid) -> Result<(), RepositoryFailure> {
        self.write_activation(statements::ACTIVATE_NEW, key_id)
            .await
    }

    async fn last_activated(&self) -> Result<Option<Uuid>, RepositoryFailure> {
        let query = statement(statements::LAST_ACTIVATED);
        let row = self.pools.reader.fetch_optional(query).await?;
        row.map(|row| column!(row, "encryption_key_activation", "encryption_key_id"))
            .transpose()
    }

    async fn keys_in_use(&self) -> Result<Vec<Uuid>, RepositoryFailure> {
        keys_in_use(&self.pools.reader).await
    }

    async fn versions_under(
        &self,
        key_id: Uuid,
        after_sequence: i64,
        count_max: u32,
    ) -> Result<Vec<SealedVersion>, RepositoryFailure> {
        let query = statement(statements::VERSIONS_UNDER_KEY)
            .bind(key_id)
            .bind(after_sequence)
            .bind(i64::from(count_max))
            .bind(BATCH_BYTES_MAX);
        let rows = self.pools.reader.fetch_all(query).await?;
        rows.iter().map(sealed_version).collect()
    }

    /// Each statement is a transaction, so that transactions are short. On PostgreSQL it is not serializable, because it depends
    /// only on the rows that it changes. So its reads do not conflict with the transactions of requests.
    async fn replace_envelopes(
        &self,
        versions: &[ResealedVersion],
    ) -> Result<u64, RepositoryFailure> {
        let mut replaced = 0;
        for some in versions.chunks(VERSIONS_AT_ONCE) {
            let Some(first) = some.first() else {
                continue;
            };
            let sql = statements::replace_envelopes(some.len());
            let query = built_statement(sql).bind(first.envelope.key_id);
            let query = some.iter().fold(query, bind_version);
            replaced += self.pools.writer.execute(query).await?;
        }
        Ok(replaced)
    }
}

/// The maximum number of versions in a statement, each with five parameters. Preparing takes more than linear time.
const VERSIONS_AT_ONCE: usize = 200;

/// The most bytes of ciphertexts in a batch, which is decrypted and encrypted in memory. A single version may be longer.
pub const BATCH_BYTES_MAX: i64 = 16 * 1_024 * 1_024;

fn bind_version(query: Statement, version: &ResealedVersion) -> Statement {
    query
        .bind(version.sequence)
        .bind(version.key_id_before)
        .bind(version.nonce_before.as_slice())
        .bind(version.envelope.nonce.as_slice())
        .bind(version.envelope.ciphertext.as_slice())
}

fn sealed_version(row: &Row) -> Result<SealedVersion, RepositoryFailure> {
    Ok(SealedVersion {
        sequence: column!(row, "credential_version", "sequence")?,
        id: column!(row, "credential_version", "id")?,
        name: CredentialName::from_stored(column!(row, "credential", "name")?),
        envelope: Envelope {
            key_id: column!(row, "credential_version", "encryption_key_id")?,
            nonce: column!(row, "credential_version", "nonce")?,
            ciphertext: column!(row, "credential_version", "ciphertext")?,
        },
    })
}

pub(crate) mod statements {
    //! The SQL. There is one activation for each key that was ever active, so reading all of them is fine.

    /// The last one keeps its ordinal, so that servers that start with the same key write nothing.
    pub(crate) const ACTIVATE: &str = "
        insert into encryption_key_activation (encryption_key_id, ordinal)
        values ($1, (select coalesce(max(k.ordinal), 0) + 1 from encryption_key_activation k))
        on conflict (encryption_key_id) do update set ordinal = excluded.ordinal
        where encryption_key_activation.ordinal < excluded.ordinal - 1";

    pub(crate) const ACTIVATE_NEW: &str = "
        insert into encryption_key_activation (encryption_key_id, ordinal)
        values ($1, (select coalesce(max(k.ordinal), 0) + 1 from encryption_key_activation k))
        on conflict (encryption_key_id) do nothing";

    pub(crate) const LAST_ACTIVATED: &str = "
        select k.encryption_key_id from encryption_key_activation k order by k.ordinal desc limit 1";

    /// First sums up the lengths, without reading ciphertexts: a batch ends at the last version within the limit, and contains
    /// at least one version. A subquery reads the name, so that no plan joins all credentials.
    pub(crate) const VERSIONS_UNDER_KEY: &str = "
        select v.sequence, v.id, v.encryption_key_id, v.nonce, v.ciphertext, (
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
        order by v.sequence";

    /// Replaces the envelopes of `count` versions. The parameters are the new key, and for each version its sequence, its
    /// previous key and nonce, and its new nonce and ciphertext.
    pub(crate) fn replace_envelopes(count: usize) -> String {
        let version = |number: usize| {
            let places: Vec<String> = (0..COLUMNS)
                .map(|column| format!("${}", 2 + number * COLUMNS + column))
                .collect();
            format!("({})", places.join(", "))
        };
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
