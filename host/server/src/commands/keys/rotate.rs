//! `keywright keys rotate`: the rotation of encryption keys in this process, under the lease that servers take, too.

use std::{process::ExitCode, sync::Arc, time::Duration};

use keywright_core::{
    Failure,
    encryption_key::{EncryptionKeys, RotateKeys},
    ports::{Clock, Identifiers, KeyRotationRepository, Sealer},
};
use tokio::{sync::watch, time::sleep};
use uuid::Uuid;

use crate::{
    background::{
        LeaseHolder, Stop, Turn,
        rotation::{Counts, Reporter, Rotation},
    },
    commands::output::counted,
    config::Config,
    keys,
    progress::Progress,
    started::StartRefused,
    wiring::{RandomIdentifiers, SystemClock, open_database},
};

/// Encrypts with the active key what other configured keys encrypt.
pub(super) async fn rotate(
    config: &Config,
    waits: bool,
    is_quiet: bool,
) -> Result<ExitCode, StartRefused> {
    let identifiers: Arc<dyn Identifiers> = Arc::new(RandomIdentifiers);
    let database = open_database(config, Arc::clone(&identifiers)).await?;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let ring = keys::unlock(
        &config.encryption,
        &database,
        identifiers.as_ref(),
        clock.now(),
    )
    .await?;
    let active_key_id = ring.active_key_id();
    let sealer: Arc<dyn Sealer> = Arc::new(ring);
    let repository = Arc::new(database.key_rotation());
    repository
        .activate_new(active_key_id)
        .await
        .map_err(|cause| {
            StartRefused::while_doing("writing down which encryption key is active", cause)
        })?;
    let usage = EncryptionKeys {
        repository: Arc::new(database.encryption_keys()),
        sealer: Arc::clone(&sealer),
    };
    let rotate = RotateKeys { repository, sealer };
    let leases = Arc::new(database.leases());
    let command = Command {
        holder: LeaseHolder::new(leases, clock, identifiers),
        rotation: Rotation::new(
            rotate.clone(),
            usage.clone(),
            config.encryption.rotation,
            CommandReporter::new(is_quiet),
        ),
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

struct Command {
    holder: LeaseHolder,
    rotation: Rotation<CommandReporter>,
    active_key_id: Uuid,
    rotate: RotateKeys,
    usage: EncryptionKeys,
    waits: bool,
    is_quiet: bool,
}

impl Command {
    async fn run(mut self) -> Result<ExitCode, StartRefused> {
        // Nobody tells it to stop: a signal ends it at once, which does no harm.
        let never = watch::Sender::new(false);
        let mut stop = Stop::told_by(&never);
        loop {
            self.refuse_to_stand_back().await?;
            let turn = self.holder.take_turn(&mut self.rotation, &mut stop).await;
            let turn = turn.map_err(rotating)?;
            let left = self.usage.usage().await.map_err(rotating)?.inactive_keys;
            if left == 0 {
                self.rotation.reporter_mut().finish(left);
                return Ok(ExitCode::SUCCESS);
            }
            if turn == Turn::Anothers && !self.waits {
                self.say(&format!(
                    "another process rotates; {} left",
                    counted(left, "version")
                ));
                return Ok(ExitCode::SUCCESS);
            }
            // Where it did not come to its end, the lease was lost, or another key has become active: that is looked at first.
            let completed = self.rotation.completed().filter(|_| turn == Turn::Taken);
            if completed.is_some_and(|counts| !self.waits || counts.failed >= left) {
                self.rotation.reporter_mut().finish(left);
                self.say(&format!("{} not rotated", counted(left, "version")));
                return Ok(ExitCode::from(LEFT_UNDONE));
            }
            self.rotation.reporter_mut().set_left(left);
            sleep(WAITING_INTERVAL).await;
        }
    }

    /// Another server may have started with another active key.
    async fn refuse_to_stand_back(&self) -> Result<(), StartRefused> {
        if self
            .rotate
            .is_towards_active_key()
            .await
            .map_err(rotating)?
        {
            return Ok(());
        }
        Err(StartRefused::new(format!(
            "the active key of this configuration is {}, and a server has started with another one since: what is encrypted \
             goes towards that one, until a server starts with this configuration",
            self.active_key_id
        )))
    }

    fn say(&self, words: &str) {
        if !self.is_quiet {
            eprintln!("{words}");
        }
    }
}

fn rotating(cause: Failure) -> StartRefused {
    StartRefused::while_doing("rotating the encryption keys", cause)
}

/// Shows how far it has come, whoever does it.
struct CommandReporter {
    is_quiet: bool,
    progress: Option<Progress>,
    /// The most that were ever left.
    total: u64,
}

impl CommandReporter {
    fn new(is_quiet: bool) -> Self {
        Self {
            is_quiet,
            progress: None,
            total: 0,
        }
    }

    /// So many are left.
    fn set_left(&mut self, left: u64) {
        self.total = self.total.max(left);
        let (total, is_quiet) = (self.total, self.is_quiet);
        let begin = || Progress::begin("versions rotated", total, is_quiet);
        let progress = self.progress.get_or_insert_with(begin);
        progress.set_total(total);
        progress.set_done(total.saturating_sub(left));
    }

    /// So many are left at the end.
    fn finish(&mut self, left: u64) {
        self.set_left(left);
        if let Some(progress) = self.progress.take() {
            progress.finish();
        }
    }
}

impl Reporter for CommandReporter {
    fn begun(&mut self, counts: &Counts) {
        self.set_left(counts.remaining.saturating_add(counts.rotated));
        self.set_left(counts.remaining);
    }

    fn advanced(&mut self, counts: &Counts) {
        self.set_left(counts.remaining);
    }

    fn failed(&mut self, version_id: Uuid) {
        let tell = || {
            eprintln!(
                "the version {version_id} does not decrypt: it was changed, or does not belong where it stands"
            );
        };
        match &self.progress {
            Some(progress) => progress.above(tell),
            None => tell(),
        }
    }

    fn ended(&mut self, counts: &Counts) {
        self.set_left(counts.remaining);
    }

    /// The command looks for that itself, and ends.
    fn stands_back(&mut self) {}
}

/// The exit status when versions are left under inactive keys.
const LEFT_UNDONE: u8 = 3;

/// How long to wait until looking again how far another process has come.
const WAITING_INTERVAL: Duration = Duration::from_secs(1);
