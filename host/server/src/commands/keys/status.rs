//! `keywright keys status`: the encryption keys, and how much each encrypts.

use std::{collections::HashMap, process::ExitCode};

use chrono::SecondsFormat;
use keywright_core::ports::{EncryptionKeyRepository, KeyStanding, RepositoryFailure};
use keywright_crypto::{ENCRYPTIONS_PER_KEY_MAX, ENCRYPTIONS_PER_KEY_WARNED};
use keywright_storage::{Database, EncryptionKeyRow};
use serde::Serialize;
use uuid::Uuid;

use crate::{
    commands::{open_to_read, output},
    config::Config,
    keys::RecognisedKeys,
    started::StartRefused,
};

/// Prints each key that has a record, oldest first. Nothing is changed: a missing record of the active key is not
/// created, and the database of an older release is not migrated.
pub(super) async fn status(config: &Config, as_json: bool) -> Result<ExitCode, StartRefused> {
    let database = open_to_read(config).await?;
    let recognised = RecognisedKeys::read(&config.encryption, &database).await?;
    let read = read(&database).await;
    let stored = read
        .map_err(|cause| StartRefused::while_doing("reading the encryption key records", cause))?;
    database.close().await;
    let is_new = !recognised.is_active_known();
    let records = stored.records.iter();
    let keys = records.map(|record| KeyStatus::of(record, &stored, &recognised));
    let keys: Vec<KeyStatus> = keys.collect();
    let text = if as_json {
        let status = serde_json::json!({
            "keys": keys,
            "active_key_is_new": is_new,
            "encryptions_max": ENCRYPTIONS_PER_KEY_MAX,
        });
        format!("{status:#}\n")
    } else {
        table(&keys)
            + if is_new { NEW_KEY_NOTE } else { "" }
            + if is_nearly_exhausted(&keys) {
                EXHAUSTION_NOTE
            } else {
                ""
            }
    };
    output::print(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// The records of all keys, and their counts.
struct Stored {
    records: Vec<EncryptionKeyRow>,
    versions: HashMap<Uuid, u64>,
    encryptions: HashMap<Uuid, u64>,
}

async fn read(database: &Database) -> Result<Stored, RepositoryFailure> {
    let repository = database.encryption_keys();
    Ok(Stored {
        records: repository.all().await?,
        versions: repository.versions_by_key().await?.into_iter().collect(),
        encryptions: repository.encryptions_by_key().await?.into_iter().collect(),
    })
}

/// One key.
#[derive(Serialize)]
struct KeyStatus {
    id: Uuid,
    provider: String,
    created_at: String,
    state: &'static str,
    versions: u64,
    /// The maximum number of values it can have encrypted.
    encryptions: u64,
}

impl KeyStatus {
    fn of(record: &EncryptionKeyRow, stored: &Stored, recognised: &RecognisedKeys) -> Self {
        let count =
            |counts: &HashMap<Uuid, u64>| counts.get(&record.id).copied().unwrap_or_default();
        Self {
            id: record.id,
            provider: record.provider.clone(),
            created_at: record.created_at.to_rfc3339_opts(SecondsFormat::Secs, true),
            state: match recognised.standing(record.id) {
                KeyStanding::Active => ACTIVE,
                KeyStanding::Inactive => "inactive",
                KeyStanding::Unknown => "unknown",
            },
            versions: count(&stored.versions),
            encryptions: count(&stored.encryptions),
        }
    }
}

/// Formats a table for people.
fn table(keys: &[KeyStatus]) -> String {
    let line = |id: &str, provider: &str, created_at: &str, state: &str, counts: [&str; 2]| {
        let [versions, encryptions] = counts;
        format!(
            "{id:<36}  {provider:<8}  {created_at:<20}  {state:<8}  {versions:>10}  {encryptions:>11}\n"
        )
    };
    let counts = ["VERSIONS", "ENCRYPTIONS"];
    let head = line("KEY", "PROVIDER", "MADE", "STATE", counts);
    let lines = keys.iter().map(|key| {
        let (versions, encryptions) = (key.versions.to_string(), key.encryptions.to_string());
        let (id, counts) = (key.id.to_string(), [versions.as_str(), &encryptions]);
        line(&id, &key.provider, &key.created_at, key.state, counts)
    });
    std::iter::once(head).chain(lines).collect()
}

/// Returns whether the active key should be replaced soon because of the number of its encryptions.
fn is_nearly_exhausted(keys: &[KeyStatus]) -> bool {
    let mut active = keys.iter().filter(|key| key.state == ACTIVE);
    active.any(|key| key.encryptions >= ENCRYPTIONS_PER_KEY_WARNED)
}

const ACTIVE: &str = "active";

/// The note printed in this case.
const EXHAUSTION_NOTE: &str = "The active key has encrypted more than half of its maximum number of values: configure a new active key.\n";

/// The note printed if the active key is not in the table.
const NEW_KEY_NOTE: &str = "The configured active key is not listed because it was never active.\n";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_columns_of_a_table_are_aligned() {
        let key = |id, state, versions| KeyStatus {
            id: Uuid::from_u128(id),
            provider: "raw".to_owned(),
            created_at: "2026-01-02T03:04:05Z".to_owned(),
            state,
            versions,
            encryptions: 1_024,
        };
        let text = table(&[key(1, "inactive", 0), key(2, "active", 1_234_567)]);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines[0],
            "KEY                                   PROVIDER  MADE                  STATE       VERSIONS  ENCRYPTIONS"
        );
        assert_eq!(
            lines[2],
            "00000000-0000-0000-0000-000000000002  raw       2026-01-02T03:04:05Z  active       1234567         1024"
        );
    }
}
