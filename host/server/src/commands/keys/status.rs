//! `keywright keys status`: which keys there are, and how much each of them encrypts.

use std::{collections::HashMap, process::ExitCode};

use chrono::SecondsFormat;
use keywright_core::ports::{EncryptionKeyRepository, KeyStanding, RepositoryFailure};
use keywright_storage::{Database, EncryptionKeyRow};
use serde::Serialize;
use uuid::Uuid;

use crate::{
    commands::{open_to_read, output},
    config::Config,
    keys::RecognisedKeys,
    started::StartRefused,
};

/// Shows each key that has a record, oldest first. It changes nothing: neither where the active key has no record yet, nor
/// where the database is that of an older program.
pub(super) async fn status(config: &Config, as_json: bool) -> Result<ExitCode, StartRefused> {
    let database = open_to_read(config).await?;
    let recognised = RecognisedKeys::read(&config.encryption, &database).await?;
    let read = read(&database).await;
    let (records, versions) = read.map_err(|cause| {
        StartRefused::while_doing("reading the records of encryption keys", cause)
    })?;
    database.close().await;
    let is_new = !recognised.is_active_known();
    let keys = records
        .into_iter()
        .map(|record| KeyStatus::of(record, &versions, &recognised));
    let keys: Vec<KeyStatus> = keys.collect();
    let text = if as_json {
        let status = serde_json::json!({"keys": keys, "active_key_is_new": is_new});
        format!("{status:#}\n")
    } else {
        table(&keys) + if is_new { NEW_KEY } else { "" }
    };
    output::print(&text)?;
    Ok(ExitCode::SUCCESS)
}

async fn read(
    database: &Database,
) -> Result<(Vec<EncryptionKeyRow>, HashMap<Uuid, u64>), RepositoryFailure> {
    let repository = database.encryption_keys();
    let records = repository.all().await?;
    let versions = repository.versions_by_key().await?;
    Ok((records, versions.into_iter().collect()))
}

/// One key.
#[derive(Serialize)]
struct KeyStatus {
    id: Uuid,
    provider: String,
    created_at: String,
    state: &'static str,
    versions: u64,
}

impl KeyStatus {
    fn of(
        record: EncryptionKeyRow,
        versions: &HashMap<Uuid, u64>,
        recognised: &RecognisedKeys,
    ) -> Self {
        Self {
            id: record.id,
            provider: record.provider,
            created_at: record.created_at.to_rfc3339_opts(SecondsFormat::Secs, true),
            state: match recognised.standing(record.id) {
                KeyStanding::Active => "active",
                KeyStanding::Inactive => "inactive",
                KeyStanding::Unknown => "unknown",
            },
            versions: versions.get(&record.id).copied().unwrap_or_default(),
        }
    }
}

/// A table for people.
fn table(keys: &[KeyStatus]) -> String {
    let line = |id: &str, provider: &str, created_at: &str, state: &str, versions: &str| {
        format!("{id:<36}  {provider:<8}  {created_at:<20}  {state:<8}  {versions:>10}\n")
    };
    let head = line("KEY", "PROVIDER", "MADE", "STATE", "VERSIONS");
    let lines = keys.iter().map(|key| {
        let (id, versions) = (key.id.to_string(), key.versions.to_string());
        line(&id, &key.provider, &key.created_at, key.state, &versions)
    });
    std::iter::once(head).chain(lines).collect()
}

/// What is added to the table where the active key is none of those in it.
const NEW_KEY: &str = "The configured active key is none of these: it never was active.\n";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_columns_of_a_table_stand_below_each_other() {
        let key = |id, state, versions| KeyStatus {
            id: Uuid::from_u128(id),
            provider: "raw".to_owned(),
            created_at: "2026-01-02T03:04:05Z".to_owned(),
            state,
            versions,
        };
        let text = table(&[key(1, "inactive", 0), key(2, "active", 1_234_567)]);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines[0],
            "KEY                                   PROVIDER  MADE                  STATE       VERSIONS"
        );
        assert_eq!(
            lines[2],
            "00000000-0000-0000-0000-000000000002  raw       2026-01-02T03:04:05Z  active       1234567"
        );
    }
}
