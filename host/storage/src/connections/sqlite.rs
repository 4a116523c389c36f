//! A SQLite file: connections to it, and the check that its path still names it.
//!
//! A process keeps an open file even if its name changes. After a rename, an unlink or a replacement, SQLite would continue to
//! write to a file that no later start finds. So the paths of the database, its write-ahead log and that log's index must name the
//! files that were opened at start. Otherwise no connection is opened, no group of writes begins, and no commit is acknowledged.
//! Reads use the outcome of the last check, which a task repeats every [`CHECK_INTERVAL`].

use std::{
    borrow::Cow,
    cell::RefCell,
    collections::BTreeMap,
    error::Error,
    fmt, fs, io, mem,
    ops::ControlFlow,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::{
        Arc, OnceLock, Weak,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use keywright_core::ports::RepositoryError;
use rusqlite::{OpenFlags, types::ValueRef};
use sqlx::error::{DatabaseError, ErrorKind};
use tokio::task::spawn_blocking;

use super::held_snapshot::HeldSnapshot;
use crate::{
    row::{Decoded, Row, SqliteRow},
    statement::{Statement, Text, numbered},
};

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
            held.release();
        }
        Ok(())
    }

    /// Returns the snapshot that is held while nothing is written, if the file is watched.
    pub(super) fn held_snapshot(&self) -> Option<&HeldSnapshot> {
        self.watch.as_ref().map(|watch| &watch.held_snapshot)
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
        tokio::time::sleep(CHECK_INTERVAL).await;
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

/// How to open connections to a SQLite file.
#[derive(Clone, Debug)]
pub(crate) struct SqliteSettings {
    /// The file, which must exist. It may be empty.
    pub(crate) path: PathBuf,
    /// Whether writes are refused.
    pub(crate) is_read_only: bool,
    /// How long a statement waits for a lock that another process holds.
    pub(crate) wait_max: Duration,
    /// The maximum size of the connection's page cache.
    pub(crate) cache_kibibytes_max: u32,
}

/// A connection to a SQLite file. Its methods block the thread. Dropping it rolls back its transaction and closes it.
pub(crate) struct SqliteConnection {
    connection: rusqlite::Connection,
    /// The SQLite texts of constant statements that have run, by the address and the length of the constant.
    texts: RefCell<BTreeMap<(usize, usize), Arc<str>>>,
}

/// A function that receives the rows of a statement, and may stop before the last one.
type RowReceiver<'r> = &'r mut dyn FnMut(&rusqlite::Row<'_>) -> rusqlite::Result<ControlFlow<()>>;

impl SqliteConnection {
    /// Opens a file. Creates a write-ahead log for a writable file without one.
    pub(crate) fn open(settings: &SqliteSettings) -> sqlx::Result<Self> {
        let access = if settings.is_read_only {
            OpenFlags::SQLITE_OPEN_READ_ONLY
        } else {
            OpenFlags::SQLITE_OPEN_READ_WRITE
        };
        let flags = access | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let opened = Self {
            connection: rusqlite::Connection::open_with_flags(&settings.path, flags)
                .map_err(into_sqlx)?,
            texts: RefCell::default(),
        };
        opened.set_wait_max(settings.wait_max)?;
        opened
            .connection
            .set_prepared_statement_cache_capacity(STATEMENTS_CACHED_MAX);
        let cache_kibibytes_max = settings.cache_kibibytes_max;
        opened.run(&format!(
            "pragma temp_store = memory; pragma cache_size = -{cache_kibibytes_max}"
        ))?;
        if !settings.is_read_only {
            opened.run(&format!(
                "pragma journal_mode = wal; pragma synchronous = full; pragma foreign_keys = on;
                 pragma secure_delete = on; pragma journal_size_limit = {JOURNAL_BYTES_MAX};
                 pragma wal_autocheckpoint = {CHECKPOINT_PAGES}"
            ))?;
        }
        Ok(opened)
    }

    /// Sets how long statements wait for a lock that another connection holds.
    pub(crate) fn set_wait_max(&self, wait_max: Duration) -> sqlx::Result<()> {
        self.connection.busy_timeout(wait_max).map_err(into_sqlx)
    }

    pub(super) fn is_in_transaction(&self) -> bool {
        !self.connection.is_autocommit()
    }

    /// Runs statements without parameters, and ignores their rows.
    pub(crate) fn run(&self, sql: &str) -> sqlx::Result<()> {
        self.connection.execute_batch(sql).map_err(into_sqlx)
    }

    pub(crate) fn fetch_all(&self, statement: &Statement) -> sqlx::Result<Vec<Row>> {
        let mut rows = Vec::new();
        let mut receive = |row| {
            rows.push(row);
            ControlFlow::Continue(())
        };
        let fetched = self.fetch_each(statement, &mut receive);
        fetched.map(|_| rows)
    }

    /// Runs a statement and returns its first row, if there is one.
    pub(crate) fn fetch_optional(&self, statement: &Statement) -> sqlx::Result<Option<Row>> {
        let mut first = None;
        let mut receive = |row| {
            first = Some(row);
            ControlFlow::Break(())
        };
        let fetched = self.fetch_each(statement, &mut receive);
        fetched.map(|_| first)
    }

    /// Runs a statement and returns the number of rows that it changed.
    pub(crate) fn execute(&self, statement: &Statement) -> sqlx::Result<u64> {
        let fetched = self.fetch_each(statement, &mut |_| ControlFlow::Continue(()));
        fetched.map(|_| self.connection.changes())
    }

    /// Inserts a row and returns its integer key. SQLite would copy rows that a statement returns into a temporary table first.
    pub(crate) fn insert(&self, statement: &Statement) -> sqlx::Result<i64> {
        self.execute(statement)?;
        Ok(self.connection.last_insert_rowid())
    }

    pub(crate) fn decode_all<T: Decoded>(
        &self,
        statement: &Statement,
    ) -> sqlx::Result<Result<Vec<T>, RepositoryError>> {
        let mut outcome = Ok(Vec::new());
        let mut receive = |row: &rusqlite::Row<'_>| {
            match (&mut outcome, T::decode(row)) {
                (Ok(decoded), Ok(one)) => decoded.push(one),
                (_, Err(failure)) => outcome = Err(failure),
                (Err(_), _) => {}
            }
            Ok(flow_while(outcome.is_ok()))
        };
        let fetched = self.each_row(statement, &mut receive);
        fetched.map(|_| outcome)
    }

    /// Runs a statement and passes its rows to the receiver, one by one, until there are no more or the receiver stops.
    pub(crate) fn fetch_each(
        &self,
        statement: &Statement,
        receive: &mut dyn FnMut(Row) -> ControlFlow<()>,
    ) -> sqlx::Result<ControlFlow<()>> {
        let mut names: Option<Arc<[Box<str>]>> = None;
        let mut receive = |row: &rusqlite::Row<'_>| {
            let names = names.get_or_insert_with(|| {
                let names = row.as_ref().column_names();
                names.into_iter().map(Box::from).collect()
            });
            let row = SqliteRow::copy(row, Arc::clone(names))?;
            Ok(receive(Row::Sqlite(row)))
        };
        self.each_row(statement, &mut receive)
    }

    fn each_row(
        &self,
        statement: &Statement,
        receive: RowReceiver<'_>,
    ) -> sqlx::Result<ControlFlow<()>> {
        let fetched = match &statement.text {
            Text::Constant(sql) => {
                let prepared = self.connection.prepare_cached(&self.numbered_text(sql));
                prepared.and_then(|mut prepared| each_row(&mut prepared, statement, receive))
            }
            Text::Built(sql) => {
                let prepared = self.connection.prepare(&numbered(sql));
                prepared.and_then(|mut prepared| each_row(&mut prepared, statement, receive))
            }
        };
        fetched.map_err(into_sqlx)
    }

    /// Returns the text for SQLite. Finds it by the address of the constant, which identifies the constant.
    fn numbered_text(&self, sql: &'static str) -> Arc<str> {
        let mut texts = self.texts.borrow_mut();
        let text = texts.entry((sql.as_ptr().addr(), sql.len()));
        Arc::clone(text.or_insert_with(|| numbered(sql).into()))
    }

    /// Returns how often SQLite prepared a statement again after its first run.
    #[cfg(test)]
    pub(crate) fn repreparations(&self, sql: &'static str) -> sqlx::Result<i32> {
        let prepared = self.connection.prepare_cached(&self.numbered_text(sql));
        let again = |prepared: rusqlite::CachedStatement<'_>| {
            prepared.get_status(rusqlite::StatementStatus::RePrepare)
        };
        prepared.map(again).map_err(into_sqlx)
    }

    /// Decodes the rows of a statement that reads a table and ends with a row of nulls, and passes them to further reads on the same
    /// snapshot of the database. The snapshot lasts until the statement ends, so the reads need no transaction.
    pub(crate) fn decode_and_read<T: Decoded, R>(
        &self,
        statement: &Statement,
        read: impl FnOnce(Vec<T>) -> sqlx::Result<R>,
    ) -> sqlx::Result<Result<R, RepositoryError>> {
        let mut decoded = Vec::new();
        let mut read = Some(read);
        let mut outcome = Err(sqlx::Error::RowNotFound);
        let mut receive = |row: &rusqlite::Row<'_>| {
            if row.get_ref(0)? != ValueRef::Null {
                match T::decode(row) {
                    Ok(one) => decoded.push(one),
                    Err(failure) => outcome = Ok(Err(failure)),
                }
            } else if let Some(read) = read.take() {
                outcome = read(mem::take(&mut decoded)).map(Ok);
            }
            Ok(flow_while(outcome.is_err() && read.is_some()))
        };
        let read = self.each_row(statement, &mut receive);
        read.and(outcome)
    }

    /// Reads until `is_interrupted` is set. Waits for at most `wait_max` for locks of other connections.
    pub(super) fn interruptible<T>(
        &self,
        wait_max: Duration,
        is_interrupted: Arc<AtomicBool>,
        read: impl FnOnce(&Self) -> sqlx::Result<T>,
    ) -> sqlx::Result<T> {
        let watch = move || is_interrupted.load(Ordering::Relaxed);
        self.connection
            .progress_handler(STEPS_BETWEEN_CHECKS, Some(watch))
            .map_err(into_sqlx)?;
        self.set_wait_max(wait_max)?;
        let outcome = read(self);
        self.set_wait_max(Duration::ZERO)?;
        self.connection
            .progress_handler(0, None::<fn() -> bool>)
            .map_err(into_sqlx)?;
        outcome
    }
}

fn each_row(
    prepared: &mut rusqlite::Statement<'_>,
    statement: &Statement,
    receive: RowReceiver<'_>,
) -> rusqlite::Result<ControlFlow<()>> {
    statement.bind_to(prepared)?;
    let mut rows = prepared.raw_query();
    while let Some(row) = rows.next()? {
        if receive(row)?.is_break() {
            return Ok(ControlFlow::Break(()));
        }
    }
    Ok(ControlFlow::Continue(()))
}

fn flow_while(condition: bool) -> ControlFlow<()> {
    if condition {
        ControlFlow::Continue(())
    } else {
        ControlFlow::Break(())
    }
}

/// Converts an error of rusqlite to one of sqlx with the same result code.
fn into_sqlx(error: rusqlite::Error) -> sqlx::Error {
    match error {
        rusqlite::Error::SqliteFailure(cause, message) => {
            sqlx::Error::Database(Box::new(SqliteError {
                code: cause.extended_code,
                message: message.unwrap_or_else(|| cause.to_string()),
            }))
        }
        rusqlite::Error::SqlInputError { error, msg, .. } => {
            sqlx::Error::Database(Box::new(SqliteError {
                code: error.extended_code,
                message: msg,
            }))
        }
        error => sqlx::Error::Decode(Box::new(error)),
    }
}

#[derive(Debug)]
struct SqliteError {
    /// The extended result code.
    code: i32,
    message: String,
}

impl fmt::Display for SqliteError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "(code: {}) {}", self.code, self.message)
    }
}

impl Error for SqliteError {}

impl DatabaseError for SqliteError {
    fn message(&self) -> &str {
        &self.message
    }

    fn code(&self) -> Option<Cow<'_, str>> {
        Some(self.code.to_string().into())
    }

    fn as_error(&self) -> &(dyn Error + Send + Sync + 'static) {
        self
    }

    fn as_error_mut(&mut self) -> &mut (dyn Error + Send + Sync + 'static) {
        self
    }

    fn into_error(self: Box<Self>) -> Box<dyn Error + Send + Sync + 'static> {
        self
    }

    fn kind(&self) -> ErrorKind {
        match self.code {
            rusqlite::ffi::SQLITE_CONSTRAINT_UNIQUE
            | rusqlite::ffi::SQLITE_CONSTRAINT_PRIMARYKEY => ErrorKind::UniqueViolation,
            _ => ErrorKind::Other,
        }
    }
}

/// The interval between checks while nothing is written.
const CHECK_INTERVAL: Duration = Duration::from_millis(250);

/// The number of virtual-machine steps between two checks for an interruption.
const STEPS_BETWEEN_CHECKS: i32 = 4_096;

/// The maximum number of prepared statements that a connection caches.
const STATEMENTS_CACHED_MAX: usize = 128;

/// When the write-ahead log has this many pages, a commit also writes them to the database file, which takes three more flushes. With
/// SQLite's default of 1,000, this happens too often. With more than about 4,000, reads are slower: the index of the log has one part
/// for that many pages, and a read searches all parts.
const CHECKPOINT_PAGES: u32 = 4_000;

/// The maximum size of the write-ahead log after a checkpoint, in bytes.
const JOURNAL_BYTES_MAX: u32 = 64 * 1024 * 1024;
