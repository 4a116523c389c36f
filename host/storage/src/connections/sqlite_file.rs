//! An open SQLite file: the check that its path still names it, the snapshot that is held while nothing is written, and the limit of the
//! write-ahead log.
//!
//! # The check
//!
//! A process keeps an open file even if its name changes. After a rename, an unlink or a replacement, SQLite would continue to
//! write to a file that no later start finds. So the paths of the database, its write-ahead log and that log's index must name the
//! files that were opened at start. Otherwise no connection is opened, no group of writes begins, and no commit is acknowledged.
//! Reads use the outcome of the last check, which a task repeats every [`CHECK_INTERVAL`].
//!
//! # The snapshot
//!
//! Each read locks its snapshot of the file. While another connection of the process holds the same lock, SQLite only counts the
//! holders. Otherwise, a read makes two system calls, during which reads on other threads wait.
//!
//! While a snapshot is held, the write-ahead log can't be written from its beginning again, and would grow. So no snapshot is held
//! from before a group of writes begins until nothing, in any process, has been written for an interval.
//!
//! # The limit of the log
//!
//! Each long read holds a snapshot, too. If long reads overlap all the time, at least one of them always holds a snapshot from before
//! the last commit. So whenever the log has grown too much, no long read begins until all of them have ended and the log is written
//! from its beginning again.

use std::{
    fs, io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::{
        Arc, OnceLock, Weak,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use tokio::{
    task::spawn_blocking,
    time::{sleep, timeout},
};

use super::{
    pool::LongReads,
    sqlite::{JOURNAL_BYTES_MAX, SqliteConnection, SqliteSettings},
};
use crate::statement::{Columns, statement};

/// A SQLite file: how to connect to it, and whether its path must keep naming it.
#[derive(Clone)]
pub(crate) struct SqliteFile {
    settings: SqliteSettings,
    watch: Option<Arc<FileWatch>>,
}

/// The files of a database, as they were when it was opened.
pub(crate) struct FileWatch {
    database: WatchedFile,
    /// The write-ahead log and its index. Both exist while a connection that has read is open.
    side_files: OnceLock<[WatchedFile; 2]>,
    is_in_place: AtomicBool,
    has_ended: AtomicBool,
    held_snapshot: HeldSnapshot,
}

struct WatchedFile {
    path: PathBuf,
    identity: FileIdentity,
}

/// Identifies a file on a machine, independently of its name.
#[derive(Clone, Copy, PartialEq, Eq)]
struct FileIdentity {
    device: u64,
    inode: u64,
}

/// The path of a database file no longer names the file that is open.
#[derive(Debug, thiserror::Error)]
#[error(
    "{} is not the file that this server opened: it was moved, deleted or replaced; put the file back, or restart the server \
     to use the file that is now at this path",
    .path.display()
)]
struct FileDisplacedError {
    path: PathBuf,
    /// The reason why the path can't be inspected. `None` if it names another file.
    #[source]
    source: Option<io::Error>,
}

impl SqliteFile {
    /// Returns a file that may be moved while it is read.
    pub(crate) fn unwatched(settings: SqliteSettings) -> Self {
        Self {
            settings,
            watch: None,
        }
    }

    /// Returns a file that is used only while its path names it.
    pub(crate) fn watched(settings: SqliteSettings, watch: &Arc<FileWatch>) -> Self {
        Self {
            settings,
            watch: Some(Arc::clone(watch)),
        }
    }

    pub(super) fn connect(&self) -> sqlx::Result<SqliteConnection> {
        self.check()?;
        let connection = SqliteConnection::open(&self.settings)?;
        // Since the first check, another file may have been moved to the path.
        self.check()?;
        Ok(connection)
    }

    /// Checks that the path still names the file.
    pub(super) fn check(&self) -> sqlx::Result<()> {
        self.watch.as_ref().map_or(Ok(()), |watch| watch.check())
    }

    /// Checks the path, and lets a group of writes use the whole write-ahead log.
    pub(super) fn prepare_to_write(&self) -> sqlx::Result<()> {
        self.check()?;
        if let Some(held) = self.held_snapshot() {
            held.suspend();
        }
        Ok(())
    }

    /// Lets a snapshot be held again, after a group of writes.
    pub(super) fn end_write(&self) {
        if let Some(held) = self.held_snapshot() {
            held.resume();
        }
    }

    /// Returns the snapshot that is held while nothing is written, if the file is watched.
    pub(super) fn held_snapshot(&self) -> Option<&HeldSnapshot> {
        self.watch.as_ref().map(|watch| &watch.held_snapshot)
    }

    /// Starts to pause long reads whenever the write-ahead log has grown too much, if the file is watched.
    pub(super) fn limit_log(&self, long_reads: &LongReads, wait_max: Duration) {
        if let Some(watch) = &self.watch {
            tokio::spawn(limit_log(
                Arc::downgrade(watch),
                long_reads.clone(),
                wait_max,
            ));
        }
    }

    /// Returns the outcome of the last check.
    pub(super) fn require_in_place(&self) -> sqlx::Result<()> {
        match &self.watch {
            Some(watch) if !watch.is_in_place() => watch.check(),
            _ => Ok(()),
        }
    }
}

impl FileWatch {
    /// Watches the file that this path names now.
    pub(crate) fn begin(path: &Path) -> io::Result<Arc<Self>> {
        let watch = Arc::new(Self {
            database: WatchedFile::at(path.to_owned())?,
            side_files: OnceLock::new(),
            is_in_place: AtomicBool::new(true),
            has_ended: AtomicBool::new(false),
            held_snapshot: HeldSnapshot::default(),
        });
        tokio::spawn(keep_checking(Arc::downgrade(&watch)));
        Ok(watch)
    }

    /// Also watches the write-ahead log and its index, which must exist by now.
    pub(crate) fn watch_side_files(&self) -> io::Result<()> {
        // SQLite creates them next to the target of a symbolic link.
        let database = fs::canonicalize(&self.database.path)?;
        let side_file = |end: &str| {
            let mut path = database.clone().into_os_string();
            path.push(end);
            WatchedFile::at(path.into())
        };
        let side_files = [side_file("-wal")?, side_file("-shm")?];
        self.side_files.get_or_init(|| side_files);
        Ok(())
    }

    /// Returns whether the paths named the files at the last check.
    pub(crate) fn is_in_place(&self) -> bool {
        self.is_in_place.load(Ordering::Acquire)
    }

    /// Ends the watch, before connections are closed: the last one deletes the write-ahead log.
    pub(crate) fn end(&self) {
        self.has_ended.store(true, Ordering::Release);
        self.held_snapshot.close();
    }

    /// Checks that the paths still name the files. Logs when that changes.
    pub(crate) fn check(&self) -> sqlx::Result<()> {
        let side_files = self.side_files.get().into_iter().flatten();
        let mut files = std::iter::once(&self.database).chain(side_files);
        let checked = files.try_for_each(WatchedFile::check);
        let failed = |displaced| sqlx::Error::Io(io::Error::other(displaced));
        if self.has_ended.load(Ordering::Acquire) {
            return checked.map_err(failed);
        }
        let was_in_place = self.is_in_place.swap(checked.is_ok(), Ordering::AcqRel);
        match &checked {
            Err(displaced) if was_in_place => tracing::error!(
                error = displaced as &dyn std::error::Error,
                "stopped using the database: its file was moved or replaced"
            ),
            Ok(()) if !was_in_place => {
                tracing::info!("resumed using the database: its file is back");
            }
            _ => {}
        }
        checked.map_err(failed)
    }
}

/// Pauses long reads whenever the write-ahead log has grown by [`LOG_GROWTH_MAX`] since it was shortest or was limited last. Another
/// process can hold a snapshot for a long time, for example for a backup. So a pause is short even if the log stays long.
async fn limit_log(watch: Weak<FileWatch>, long_reads: LongReads, wait_max: Duration) {
    let mut bytes_max = u64::MAX;
    loop {
        sleep(CHECK_INTERVAL).await;
        let Some(bytes) = log_bytes(&watch).await else {
            return;
        };
        bytes_max = bytes_max.min(bytes.saturating_add(LOG_GROWTH_MAX));
        if bytes < bytes_max {
            continue;
        }
        // Half of the time, so that long reads in the queue still begin in time if a running one takes longer.
        if let Ok(Some(_pause)) = timeout(wait_max / 2, long_reads.pause()).await {
            for _ in 0..RESTART_CHECKS_MAX {
                if log_bytes(&watch).await.is_none_or(|now| now < bytes) {
                    break;
                }
                sleep(RESTART_INTERVAL).await;
            }
        }
        bytes_max = u64::MAX;
    }
}

/// Returns the size of the write-ahead log, in bytes. `None` if the file is not used any more.
async fn log_bytes(watch: &Weak<FileWatch>) -> Option<u64> {
    let watch = watch.upgrade()?;
    let reading = spawn_blocking(move || {
        let [log, _] = watch.side_files.get()?;
        fs::metadata(&log.path).ok()
    });
    let metadata = reading.await.ok().flatten();
    Some(metadata.map_or(0, |metadata| metadata.len()))
}

impl WatchedFile {
    fn at(path: PathBuf) -> io::Result<Self> {
        let identity = identity(&path)?;
        Ok(Self { path, identity })
    }

    fn check(&self) -> Result<(), FileDisplacedError> {
        let source = match identity(&self.path) {
            Ok(identity) if identity == self.identity => return Ok(()),
            Ok(_) => None,
            Err(cause) => Some(cause),
        };
        Err(FileDisplacedError {
            path: self.path.clone(),
            source,
        })
    }
}

fn identity(path: &Path) -> io::Result<FileIdentity> {
    let metadata = fs::metadata(path)?;
    Ok(FileIdentity {
        device: metadata.dev(),
        inode: metadata.ino(),
    })
}

/// Checks while the database is in use, so that reads and health checks need not.
async fn keep_checking(watch: Weak<FileWatch>) {
    loop {
        sleep(CHECK_INTERVAL).await;
        let Some(watch) = watch.upgrade() else {
            return;
        };
        // The watch records a failure. A check that can't run has no outcome.
        let checking = spawn_blocking(move || {
            watch.held_snapshot.renew();
            watch.check()
        });
        drop(checking.await);
    }
}

/// The interval between checks while nothing is written.
const CHECK_INTERVAL: Duration = Duration::from_millis(250);

/// How much the write-ahead log may grow before long reads pause. A longer log is truncated to this size when it is written from its
/// beginning again.
const LOG_GROWTH_MAX: u64 = JOURNAL_BYTES_MAX;

/// The interval between checks whether the log was truncated, and their number. While the database is written, two commits are enough.
const RESTART_INTERVAL: Duration = Duration::from_millis(10);
const RESTART_CHECKS_MAX: u32 = 25;

/// The open snapshot. `None` before its connection is opened, and after it is closed.
#[derive(Default)]
pub(super) struct HeldSnapshot(Mutex<Option<Holder>>);

struct Holder {
    connection: SqliteConnection,
    /// A number that differs after another connection has committed a change.
    data_version: Option<i64>,
    is_suspended: bool,
}

impl HeldSnapshot {
    /// Uses this connection from now on. The first call of [`Self::renew`] does not hold a snapshot yet.
    pub(super) fn open(&self, connection: SqliteConnection) {
        *self.0.lock() = Some(Holder {
            connection,
            data_version: None,
            is_suspended: false,
        });
    }

    /// Releases the snapshot, and holds the latest one if nothing was written since the last call. Does nothing while suspended.
    pub(super) fn renew(&self) {
        if let Some(holder) = &mut *self.0.lock() {
            // After a failure, reads take the lock themselves, and report the failure if it lasts.
            let _ = holder.renew();
        }
    }

    /// Releases the snapshot, and holds none until [`Self::resume`].
    fn suspend(&self) {
        let mut holder = self.0.lock();
        if let Some(open) = &mut *holder {
            open.is_suspended = true;
            if open.release().is_err() {
                *holder = None;
            }
        }
    }

    /// Lets [`Self::renew`] hold a snapshot again.
    fn resume(&self) {
        if let Some(holder) = &mut *self.0.lock() {
            holder.is_suspended = false;
        }
    }

    /// Releases the snapshot and closes the connection.
    fn close(&self) {
        *self.0.lock() = None;
    }
}

impl Holder {
    fn renew(&mut self) -> sqlx::Result<()> {
        if self.is_suspended {
            return Ok(());
        }
        self.release()?;
        let row = self.connection.fetch_optional(&statement(DATA_VERSION))?;
        let data_version = row.map(|row| row.at(0)).transpose()?;
        let last = std::mem::replace(&mut self.data_version, data_version);
        if last == data_version {
            self.connection.run(BEGIN_AND_READ)?;
        }
        Ok(())
    }

    fn release(&self) -> sqlx::Result<()> {
        if self.connection.is_in_transaction() {
            self.connection.run("rollback")?;
        }
        Ok(())
    }
}

const DATA_VERSION: &str = "pragma data_version";

/// A transaction locks its snapshot when it first reads.
const BEGIN_AND_READ: &str = "begin; select 1 from sqlite_schema limit 1";

#[cfg(test)]
mod tests {
    use std::thread;

    use tempfile::TempDir;
    use tokio::task::JoinSet;

    use super::*;
    use crate::connections::{SqliteReaders, Writer};

    /// A file with a table, and a connection of another program to it.
    struct Fixture {
        folder: TempDir,
        other: SqliteConnection,
    }

    impl Fixture {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            fs::File::create(path_in(&folder)).unwrap();
            let other = SqliteConnection::open(&settings(&folder, false)).unwrap();
            other.run("create table text (text)").unwrap();
            Self { folder, other }
        }

        fn write(&self) {
            self.other.run("insert into text values ('a')").unwrap();
        }

        /// Returns whether a reader prevents the write-ahead log from being written from its beginning.
        fn is_pinned(&self) -> bool {
            let checkpoint = statement("pragma wal_checkpoint(truncate)");
            let row = self.other.fetch_optional(&checkpoint).unwrap();
            row.unwrap().at::<i64>(0).unwrap() == 1
        }
    }

    fn path_in(folder: &TempDir) -> PathBuf {
        folder.path().join("test.sqlite")
    }

    fn settings(folder: &TempDir, is_read_only: bool) -> SqliteSettings {
        SqliteSettings {
            path: path_in(folder),
            is_read_only,
            follows_links: true,
            wait_max: Duration::ZERO,
            cache_kibibytes_max: 2_000,
        }
    }

    #[test]
    fn a_snapshot_is_held_only_while_nothing_is_written() {
        let fixture = Fixture::new();
        let held = HeldSnapshot::default();
        held.open(SqliteConnection::open(&settings(&fixture.folder, true)).unwrap());
        held.renew();
        assert!(!fixture.is_pinned());
        for _ in 0..2 {
            fixture.write();
            held.renew();
            assert!(!fixture.is_pinned());
            fixture.write();
            held.renew();
            held.renew();
            assert!(fixture.is_pinned());
            held.suspend();
            held.renew();
            held.renew();
            assert!(!fixture.is_pinned());
            held.resume();
        }
        fixture.write();
        held.renew();
        held.renew();
        held.close();
        held.renew();
        assert!(!fixture.is_pinned());
    }

    #[tokio::test]
    async fn a_snapshot_held_before_each_write_does_not_grow_the_log() {
        let Fixture { folder, other } = Fixture::new();
        let watch = FileWatch::begin(&path_in(&folder)).unwrap();
        let file = |is_read_only| SqliteFile::watched(settings(&folder, is_read_only), &watch);
        let wait_max = Duration::from_mins(1);
        let _readers = SqliteReaders::open(file(true), 1, wait_max).await.unwrap();
        let writer = Writer::on_sqlite(file(false), wait_max).await.unwrap();
        drop(other);
        // Each write is larger than the log may become without a checkpoint.
        let log = folder.path().join("test.sqlite-wal");
        let mut log_bytes = Vec::new();
        for _ in 0..3 {
            for _ in 0..2 {
                file(true).held_snapshot().unwrap().renew();
            }
            let write = statement("insert into text values (zeroblob(20000000))");
            writer.execute(write).await.unwrap();
            log_bytes.push(fs::metadata(&log).unwrap().len());
        }
        assert!(log_bytes[2] < log_bytes[0] * 2, "{log_bytes:?}");
    }

    #[tokio::test]
    async fn overlapping_long_reads_do_not_grow_the_log_without_end() {
        let Fixture { folder, other } = Fixture::new();
        let watch = FileWatch::begin(&path_in(&folder)).unwrap();
        let file = |is_read_only| SqliteFile::watched(settings(&folder, is_read_only), &watch);
        let wait_max = Duration::from_mins(1);
        let readers = SqliteReaders::open(file(true), 4, wait_max).await.unwrap();
        let writer = Writer::on_sqlite(file(false), wait_max).await.unwrap();
        watch.watch_side_files().unwrap();
        drop(other);
        let mut reading = JoinSet::new();
        for _ in 0..3 {
            let readers = readers.clone();
            reading.spawn(async move {
                loop {
                    let read = readers.on_own_thread(|connection| {
                        connection.run(BEGIN_AND_READ)?;
                        thread::sleep(Duration::from_millis(50));
                        connection.run("rollback")
                    });
                    read.await.unwrap();
                }
            });
        }
        let log = folder.path().join("test.sqlite-wal");
        let mut log_bytes = Vec::new();
        while log_bytes.is_sorted() {
            assert!(log_bytes.len() < 40, "{log_bytes:?}");
            let write = statement("insert into text values (zeroblob(10000000))");
            writer.execute(write).await.unwrap();
            log_bytes.push(fs::metadata(&log).unwrap().len());
            sleep(Duration::from_millis(50)).await;
        }
    }
}
