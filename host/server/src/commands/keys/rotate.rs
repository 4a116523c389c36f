//! `keywright keys rotate`: key rotation in this process, under the same lease that servers use.

use std::{process::ExitCode, sync::Arc, time::Duration};

use keywright_core::{
    Failure,
    encryption_key::{EncryptionKeys, RotateKeys},
    ports::{Identifiers, KeyRotationRepository, Sealer},
};
use tokio::{sync::watch, time::sleep};
use uuid::Uuid;

use crate::{
    background::{
        LeaseHolder, LeaseOutcome, Stop,
        rotation::{Counts, Reporter, Rotation},
    },
    commands::output::counted,
    config::Config,
    keys,
    process::{self, RandomIdentifiers},
    progress::Progress,
    started::StartRefused,
    wiring::open_database,
};

/// Re-encrypts with the active key the values that other configured keys encrypt.
pub(super) async fn rotate(
    config: &Config,
    waits: bool,
    is_quiet: bool,
) -> Result<ExitCode, StartRefused> {
    let identifiers: Arc<dyn Identifiers> = Arc::new(RandomIdentifiers);
    let database = open_database(config, Arc::clone(&identifiers)).await?;
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
    let repository = Arc::new(database.key_rotation());
    repository
        .activate_new(active_key_id)
        .await
        .map_err(|cause| StartRefused::while_doing("recording the active encryption key", cause))?;
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
        // Never stops: a signal kills the process, which is safe.
        let never = watch::Sender::new(false);
        let mut stop = Stop::requested_by(&never);
        loop {
            self.check_active_key().await?;
            let turn = self
                .holder
                .run_under_lease(&mut self.rotation, &mut stop)
                .await;
            let turn = turn.map_err(rotating)?;
            let left = self.usage.usage().await.map_err(rotating)?.inactive_keys;
            if left == 0 {
                self.rotation.reporter_mut().finish(left);
                return Ok(ExitCode::SUCCESS);
            }
            if turn == LeaseOutcome::HeldElsewhere && !self.waits {
                self.print(&format!(
                    "another process rotates; {} left",
                    counted(left, "version")
                ));
                return Ok(ExitCode::SUCCESS);
            }
            // An incomplete run means that the lease was lost, or that another key became active, which is checked first.
            let completed = self
                .rotation
                .completed()
                .filter(|_| turn == LeaseOutcome::Ran);
            if completed.is_some_and(|counts| !self.waits || counts.failed >= left) {
                self.rotation.reporter_mut().finish(left);
                self.print(&format!("{} not rotated", counted(left, "version")));
                return Ok(ExitCode::from(VERSIONS_LEFT));
            }
            self.rotation.reporter_mut().set_left(left);
            sleep(WAITING_INTERVAL).await;
        }
    }

    /// Returns an error if another server has started with another active key.
    async fn check_active_key(&self) -> Result<(), StartRefused> {
        if self
            .rotate
            .is_towards_active_key()
            .await
            .map_err(rotating)?
        {
            return Ok(());
        }
        Err(StartRefused::new(format!(
            "the active key of this configuration is {}, but a server has started with another one since: values are rotated to \
             that key until a server starts with this configuration",
            self.active_key_id
        )))
    }

    fn print(&self, words: &str) {
        if !self.is_quiet {
            eprintln!("{words}");
        }
    }
}

fn rotating(cause: Failure) -> StartRefused {
    StartRefused::while_doing("rotating the encryption keys", cause)
}

/// Shows the progress, no matter which process rotates.
struct CommandReporter {
    is_quiet: bool,
    progress: Option<Progress>,
    /// The maximum number of versions ever left.
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

    /// Updates the number of versions left.
    fn set_left(&mut self, left: u64) {
        self.total = self.total.max(left);
        let (total, is_quiet) = (self.total, self.is_quiet);
        let begin = || Progress::begin("versions rotated", total, is_quiet);
        let progress = self.progress.get_or_insert_with(begin);
        progress.set_total(total);
        progress.set_done(total.saturating_sub(left));
    }

    /// Completes the progress with the number of versions left.
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
        let print = || {
            eprintln!(
                "the version {version_id} can't be decrypted: its ciphertext was modified or moved from another record"
            );
        };
        match &self.progress {
            Some(progress) => progress.above(print),
            None => print(),
        }
    }

    fn ended(&mut self, counts: &Counts) {
        self.set_left(counts.remaining);
    }

    /// The command checks this itself.
    fn superseded(&mut self) {}
}

/// The exit status if versions of inactive keys are left.
const VERSIONS_LEFT: u8 = 3;

/// The interval between checks of another process's progress.
const WAITING_INTERVAL: Duration = Duration::from_secs(1);
