//! The SQL of batches. The number of rows in a text is a power of two, so that few texts exist and stay prepared. Unused rows have
//! no id.

use keywright_core::ports::NewVersion;
use uuid::Uuid;

use crate::statement::{Statement, StatementOfMany, placeholders};

/// Locks the rows of the credentials with these folded names, in the order of the names, and returns them. Other transactions may
/// still reference the rows. If another transaction has locked a row, only its name is returned.
pub(super) fn lock_credentials(names: &[String]) -> Statement {
    LOCK_CREDENTIALS.bind([], names.iter().map(String::as_str))
}

/// Inserts the credentials of new versions with these ids, except credentials whose names exist by now.
pub(super) fn insert_credentials(credentials: &[(Uuid, &NewVersion)]) -> Statement {
    let (query, count) = INSERT_CREDENTIALS.with_placeholders(credentials.len());
    (0..count).fold(query, |query, row| {
        let (id, version) = credentials.get(row).copied().unzip();
        query
            .bind(id)
            .bind(version.map(|version| version.name.as_str()))
            .bind(version.map(|version| version.name.lookup().folded().to_owned()))
            .bind(version.map(|version| version.credential_type.as_str()))
            .bind(version.map(|version| version.created_at.timestamp_millis()))
    })
}

/// Inserts versions of the credentials with these sequences, and points the credentials at them. Returns no row for a version
/// whose sequence is not after the newest version's sequence.
pub(super) fn add_versions(versions: &[(i64, &NewVersion)]) -> Statement {
    let (query, count) = ADD_VERSIONS.with_placeholders(versions.len());
    (0..count).fold(query, |query, row| {
        let (credential_sequence, version) = versions.get(row).copied().unzip();
        let plugin = version.and_then(|version| version.provenance.as_ref());
        let envelope = version.map(|version| &version.envelope);
        query
            .bind(version.map(|version| version.id))
            .bind(credential_sequence)
            .bind(version.map(|version| version.created_at.timestamp_millis()))
            .bind(version.and_then(|version| version.is_generated))
            .bind(plugin.map(|plugin| plugin.name.as_str()))
            .bind(plugin.map(|plugin| plugin.version.as_str()))
            .bind(plugin.map(|plugin| plugin.digest.as_str()))
            .bind(plugin.map(|plugin| plugin.interface_version.as_str()))
            .bind(envelope.map(|envelope| envelope.key_id))
            .bind(envelope.map(|envelope| envelope.nonce.as_slice()))
            .bind(envelope.map(|envelope| envelope.ciphertext.as_slice()))
    })
}

/// Returns the texts, for the test of their plans.
#[cfg(test)]
pub(crate) fn texts(count: usize) -> [String; 3] {
    [&LOCK_CREDENTIALS, &INSERT_CREDENTIALS, &ADD_VERSIONS].map(|statement| statement.text(count))
}

static LOCK_CREDENTIALS: StatementOfMany = StatementOfMany::new(lock_credentials_sql);
static INSERT_CREDENTIALS: StatementOfMany = StatementOfMany::new(insert_credentials_sql);
static ADD_VERSIONS: StatementOfMany = StatementOfMany::new(add_versions_sql);

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

fn add_versions_sql(count: usize) -> String {
    let types = [
        "uuid", "bigint", "bigint", "boolean", "text", "text", "text", "text", "uuid", "bytea",
        "bytea",
    ];
    // Repeated, so that no plan reads other credentials.
    let sequences = (0..count).map(|row| format!("${}", row * types.len() + 2));
    format!(
        "with new (
             id, credential_sequence, created_at, is_generated, plugin_name, plugin_version, plugin_digest,
             interface_version, encryption_key_id, nonce, ciphertext
         ) as (values {}),
         added as (
             insert into credential_version (
                 id, credential_sequence, created_at, is_transitional, is_generated, plugin_name, plugin_version,
                 plugin_digest, interface_version, encryption_key_id, nonce, ciphertext
             )
             select new.id, new.credential_sequence, new.created_at, false, new.is_generated, new.plugin_name,
                 new.plugin_version, new.plugin_digest, new.interface_version, new.encryption_key_id, new.nonce,
                 new.ciphertext
             from new where new.id is not null
             returning id, sequence, credential_sequence, created_at
         )
         update credential set newest_sequence = added.sequence, newest_created_at = added.created_at,
             newest_expires_at = null, current_sequence = added.sequence, current_created_at = added.created_at
         from added where credential.sequence in ({}) and credential.sequence = added.credential_sequence
             and (credential.newest_sequence is null or credential.newest_sequence < added.sequence)
         returning added.id, added.sequence",
        rows(count, &types),
        sequences.collect::<Vec<_>>().join(", ")
    )
}

/// Returns rows of parameters. The first row declares the types.
fn rows(count: usize, types: &[&str]) -> String {
    let row = |row: usize| {
        let parameters = types.iter().enumerate().map(|(column, type_name)| {
            let number = row * types.len() + column + 1;
            match row {
                0 => format!("${number}::{type_name}"),
                _ => format!("${number}"),
            }
        });
        format!("({})", parameters.collect::<Vec<_>>().join(", "))
    };
    (0..count).map(row).collect::<Vec<_>>().join(", ")
}
