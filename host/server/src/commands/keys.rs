//! `keywright keys …`: the encryption keys of a database, whether or not servers use it.

use std::{collections::HashMap, path::PathBuf, process::ExitCode, sync::Arc, time::Duration};

use chrono::SecondsFormat;
use clap::Subcommand;
use keywright_core::{
    UseCaseError,
    encryption_key::{EncryptionKeys, RotateKeys},
    ports::{
        EncryptionKeyRepository, Identifiers, KeyRecord, KeyRotationRepository, KeyStatus,
        RepositoryError, Sealer,
    },
};
use keywright_crypto::{ENCRYPTIONS_PER_KEY_MAX, ENCRYPTIONS_PER_KEY_WARNED};
use keywright_storage::{Database, DatabaseOptions};
use serde::Serialize;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::output::{self, counted, print_error};
use crate::{
    app::open_database_to_read,
    background::{LeaseHolder, LeaseOutcome, rotation::Rotation},
    config::Config,
    keys::{self, RecognizedKeys},
    ownership::require_own,
    process::{self, RandomIdentifiers, on_threads},
    started::{StartupContext, StartupError},
    telemetry,
};

#[derive(Debug, Subcommand)]
pub(crate) enum KeysCommand {
    /// Re-encrypt values with the active key
    ///
    /// Servers do the same in the background. The command exits when the rotation is complete, or if another process is
    /// rotating keys. Exits with status 3 if versions remain that can't be rotated.
    Rotate {
        /// Configuration file of the servers
        #[arg(long, value_name = "FILE")]
        config: PathBuf,
        /// Wait until the rotation is complete, even if another process does it
        #[arg(long)]
        wait: bool,
        /// Show no progress
        #[arg(long)]
        quiet: bool,
    },
    /// Show all encryption keys and how much they encrypt
    ///
    /// Lists each key that was ever active. Nothing is changed.
    Status {
        /// Configuration file of the servers
        #[arg(long, value_name = "FILE")]
        config: PathBuf,
        /// Print JSON instead of a table
        #[arg(long)]
        json: bool,
    },
}

pub(crate) fn keys(command: &KeysCommand) -> Result<ExitCode, StartupError> {
    match command {
        KeysCommand::Status { config, json } => {
            let config = Config::load(config)?;
            telemetry::start(&config.log)?;
            on_threads(status(&config, *json))
        }
        KeysCommand::Rotate {
            config,
            wait,
            quiet,
        } => {
            let config = Config::load(config)?;
            if *quiet {
                telemetry::start_quietly(&config.log)?;
            } else {
                telemetry::start(&config.log)?;
            }
            on_threads(rotate(&config, *wait, *quiet))
        }
    }
}

/// Re-encrypts values of other configured keys with the active key.
async fn rotate(config: &Config, waits: bool, is_quiet: bool) -> Result<ExitCode, StartupError> {
    let identifiers: Arc<dyn Identifiers> = Arc::new(RandomIdentifiers);
    let mut options = config.storage.options()?;
    if let DatabaseOptions::Sqlite(file) = &mut options {
        file.may_create = false;
        file.path = require_own(&file.path)?;
    }
    let database = Database::open(&options, Arc::clone(&identifiers)).await?;
    let clock = process::clock();
    let ring = keys::unlock(
        &config.encryption,
        &database,
        identifiers.as_ref(),
        clock.now(),
    )
    .await?;
    let active_key_id = ring.active_key_id();
    let sealer: Arc<dyn Sealer> = Arc::new(ring);
    let repository = Arc::new(database.clone());
    repository
        .activate_new(active_key_id)
        .await
        .while_doing("recording the active encryption key")?;
    let usage = EncryptionKeys {
        repository: Arc::new(database.clone()),
        sealer: Arc::clone(&sealer),
    };
    let rotate = RotateKeys { repository, sealer };
    let leases = Arc::new(database.clone());
    let command = RotateCommand {
        holder: LeaseHolder::new(leases, clock, identifiers),
        rotation: Rotation::new(rotate.clone(), usage.clone(), config.encryption.rotation),
        active_key_id,
        rotate,
        usage,
        waits,
        is_quiet,
    };
    let status = command.run().await;
    database.close().await;
    status
}

struct RotateCommand {
    holder: LeaseHolder,
    rotation: Rotation,
    active_key_id: Uuid,
    rotate: RotateKeys,
    usage: EncryptionKeys,
    waits: bool,
    is_quiet: bool,
}

impl RotateCommand {
    async fn run(mut self) -> Result<ExitCode, StartupError> {
        // Never stops: a signal kills the process, which is safe.
        let never = CancellationToken::new();
        let total = self.usage.usage().await.map_err(rotation_failed)?;
        let total = total.inactive_keys;
        let mut is_announced = false;
        loop {
            self.check_active_key().await?;
            let outcome = self
                .holder
                .run_under_lease(&mut self.rotation, &never)
                .await;
            let outcome = outcome.map_err(rotation_failed)?;
            let usage = self.usage.usage().await.map_err(rotation_failed)?;
            let left = usage.inactive_keys;
            if left == 0 {
                return Ok(self.finish(total, left, usage.unknown_keys));
            }
            if outcome == LeaseOutcome::HeldElsewhere && !is_announced {
                is_announced = true;
                self.print(&format!(
                    "another process is rotating the keys; {} left",
                    counted(left, "version")
                ));
                if !self.waits {
                    return Ok(ExitCode::SUCCESS);
                }
            }
            // An incomplete run means that the lease was lost, or that another key became active. The next
            // iteration checks the active key first.
            let completed = self
                .rotation
                .completed()
                .filter(|_| outcome == LeaseOutcome::Ran);
            if completed.is_some_and(|counts| !self.waits || counts.failed >= left) {
                return Ok(self.finish(total, left, usage.unknown_keys));
            }
            sleep(WAITING_INTERVAL).await;
        }
    }

    /// Prints the progress since the start, no matter which process rotated, and returns the exit status: whether versions remain
    /// under keys that are configured (`left`) or unknown.
    fn finish(&self, total: u64, left: u64, unknown: u64) -> ExitCode {
        let total = total.max(left);
        let rotated = total.saturating_sub(left);
        self.print(&format!("versions rotated: {rotated} of {total}"));
        if left > 0 {
            self.print(&format!("{} not rotated", counted(left, "version")));
        }
        if unknown > 0 {
            let unknown = counted(unknown, "version");
            self.print(&format!(
                "{unknown} not rotated: encrypted with keys that are not configured"
            ));
        }
        output::status(left + unknown > 0)
    }

    /// Returns an error if a server has started with a different active key.
    async fn check_active_key(&self) -> Result<(), StartupError> {
        if self
            .rotate
            .is_towards_active_key()
            .await
            .map_err(rotation_failed)?
        {
            return Ok(());
        }
        Err(StartupError::new(format!(
            "the active key of this configuration is {}, but a server has started later with another active key; to rotate \
             values to this key, first restart a server with this configuration",
            self.active_key_id
        )))
    }

    fn print(&self, words: &str) {
        if !self.is_quiet {
            print_error(words);
        }
    }
}

fn rotation_failed(cause: UseCaseError) -> StartupError {
    StartupError::while_doing("rotating the encryption keys", cause)
}

/// Prints each key that has a record, oldest first. Nothing is changed: a missing record of the active key is not
/// created, and the database of an older release is not migrated.
async fn status(config: &Config, as_json: bool) -> Result<ExitCode, StartupError> {
    let database = open_database_to_read(config).await?;
    let recognized = RecognizedKeys::read(&config.encryption, &database).await?;
    let keys = key_reports(&database, &recognized)
        .await
        .while_doing("reading the encryption key records")?;
    database.close().await;
    let is_new = !recognized.is_active_known();
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

#[derive(Serialize)]
struct KeyReport {
    id: Uuid,
    provider: &'static str,
    created_at: String,
    state: &'static str,
    versions: u64,
    /// An upper bound of the number of values that it has encrypted.
    encryptions: u64,
}

async fn key_reports(
    database: &Database,
    recognized: &RecognizedKeys,
) -> Result<Vec<KeyReport>, RepositoryError> {
    let records = database.encryption_keys().await?;
    let versions: HashMap<_, _> = database.versions_by_key().await?.into_iter().collect();
    let encryptions: HashMap<_, _> = database.encryptions_by_key().await?.into_iter().collect();
    let report = |record: KeyRecord| KeyReport {
        id: record.id,
        provider: (&record.derivation).into(),
        created_at: record.created_at.to_rfc3339_opts(SecondsFormat::Secs, true),
        state: match recognized.status(record.id) {
            KeyStatus::Active => ACTIVE,
            KeyStatus::Inactive => "inactive",
            KeyStatus::Unknown => "unknown",
        },
        versions: versions.get(&record.id).copied().unwrap_or_default(),
        encryptions: encryptions.get(&record.id).copied().unwrap_or_default(),
    };
    Ok(records.into_iter().map(report).collect())
}

/// Formats a table for people.
fn table(keys: &[KeyReport]) -> String {
    let line = |id: &str, provider: &str, created_at: &str, state: &str, counts: [&str; 2]| {
        let [versions, encryptions] = counts;
        format!(
            "{id:<36}  {provider:<8}  {created_at:<20}  {state:<8}  {versions:>10}  {encryptions:>11}\n"
        )
    };
    let counts = ["VERSIONS", "ENCRYPTIONS"];
    let head = line("KEY", "PROVIDER", "CREATED", "STATE", counts);
    let lines = keys.iter().map(|key| {
        let (versions, encryptions) = (key.versions.to_string(), key.encryptions.to_string());
        let (id, counts) = (key.id.to_string(), [versions.as_str(), &encryptions]);
        line(&id, key.provider, &key.created_at, key.state, counts)
    });
    std::iter::once(head).chain(lines).collect()
}

/// Returns whether the active key should be replaced soon because of the number of its encryptions.
fn is_nearly_exhausted(keys: &[KeyReport]) -> bool {
    let mut active = keys.iter().filter(|key| key.state == ACTIVE);
    active.any(|key| key.encryptions >= ENCRYPTIONS_PER_KEY_WARNED)
}

/// The interval between checks of another process's progress.
const WAITING_INTERVAL: Duration = Duration::from_secs(1);

const ACTIVE: &str = "active";

/// The note printed if the active key should be replaced soon.
const EXHAUSTION_NOTE: &str = "The active key has encrypted more than half of its maximum number of values: configure a new active key.\n";

/// The note printed if the active key is not in the table.
const NEW_KEY_NOTE: &str =
    "The configured active key is not listed, because no server has used it yet.\n";
