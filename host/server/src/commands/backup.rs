//! `keywright backup`.

use std::{
    path::{self, Path},
    process::ExitCode,
};

use keywright_client::progress_bar;
use keywright_storage::{BackedUp, DatabaseOptions, SqliteOptions, back_up};
use rustix::process::geteuid;

use super::output::{self, counted};
use crate::{
    config::Config,
    ownership::require_own,
    process::{StopSignals, hangup_signal, on_threads},
    started::{StartupContext, StartupError},
    telemetry,
};

/// Copies the configured SQLite database to a file; servers may use it meanwhile.
pub(crate) fn backup(
    config: &Config,
    target: &Path,
    may_replace: bool,
) -> Result<ExitCode, StartupError> {
    telemetry::start(&config.log)?;
    let DatabaseOptions::Sqlite(source) = config.storage.options_to_read()? else {
        return Err(StartupError::new(
            "only SQLite databases can be backed up with this command; for PostgreSQL, use pg_dump, or a base backup with an \
             archive of the write-ahead log",
        ));
    };
    on_threads(async {
        // Dropping the copy removes the incomplete file.
        tokio::select! {
            done = copy(&source, target, may_replace) => done,
            interrupted = interruption() => interrupted,
        }
    })
}

async fn copy(
    source: &SqliteOptions,
    target: &Path,
    may_replace: bool,
) -> Result<ExitCode, StartupError> {
    let path = path::absolute(target).on_file("finding the path of", target)?;
    let path = match (path.parent(), path.file_name()) {
        (Some(folder), Some(name)) if geteuid().is_root() => require_own(folder)?.join(name),
        _ => path,
    };
    let progress = progress_bar("bytes copied", 0);
    let backed_up = back_up(source, &path, may_replace, |done, total| {
        progress.set_length(total);
        progress.set_position(done);
    })
    .await;
    let backed_up = backed_up.while_doing("backing up the database")?;
    drop(progress);
    let summary = summary_of(&backed_up, target);
    output::print(&format!("{summary}\n"))?;
    Ok(ExitCode::SUCCESS)
}

fn summary_of(backed_up: &BackedUp, target: &Path) -> String {
    format!(
        "backed up to {}: {} with {}, and {}, in {}",
        target.display(),
        counted(backed_up.credentials, "credential"),
        counted(backed_up.versions, "version"),
        counted(backed_up.permissions, "permission"),
        counted(backed_up.bytes, "byte"),
    )
}

/// Returns an error after a signal that ends the process.
async fn interruption() -> Result<ExitCode, StartupError> {
    let mut stop = StopSignals::listen()?;
    let mut hangup = hangup_signal()?;
    tokio::select! {
        () = stop.received() => {}
        _ = hangup.recv() => {}
    }
    let what = "the backup was interrupted; removed the incomplete file";
    Err(StartupError::new(what))
}
