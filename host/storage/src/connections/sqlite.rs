//! Connections to a SQLite file.

use std::{
    borrow::Cow, cell::RefCell, collections::BTreeMap, error::Error, mem, ops::ControlFlow,
    path::PathBuf, sync::Arc, time::Duration,
};

use keywright_core::ports::RepositoryError;
use rusqlite::{OpenFlags, types::ValueRef};
use sqlx::error::{DatabaseError, ErrorKind};

use crate::statement::{Decoded, Row, SqliteRow, Statement, Text, numbered};

/// How to open connections to a SQLite file.
#[derive(Clone, Debug)]
pub(crate) struct SqliteSettings {
    /// The file, which must exist. It may be empty.
    pub(crate) path: PathBuf,
    /// Whether writes are refused.
    pub(crate) is_read_only: bool,
    /// Whether the path may contain links.
    pub(crate) follows_links: bool,
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
        let mut flags = access | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        flags.set(OpenFlags::SQLITE_OPEN_NOFOLLOW, !settings.follows_links);
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

    pub(super) fn fetch_and_count(&self, statement: &Statement) -> sqlx::Result<(Vec<Row>, u64)> {
        let rows = self.fetch_all(statement)?;
        Ok((rows, self.connection.changes()))
    }

    /// Runs a statement and ignores its rows.
    pub(crate) fn execute(&self, statement: &Statement) -> sqlx::Result<()> {
        self.fetch_each(statement, &mut |_| ControlFlow::Continue(()))
            .map(drop)
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

    /// Reads until `is_interrupted` returns `true`. Waits for at most `wait_max` for locks of other connections.
    pub(super) fn interruptible<T>(
        &self,
        wait_max: Duration,
        is_interrupted: impl FnMut() -> bool + Send + 'static,
        read: impl FnOnce(&Self) -> sqlx::Result<T>,
    ) -> sqlx::Result<T> {
        self.connection
            .progress_handler(STEPS_BETWEEN_CHECKS, Some(is_interrupted))
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

#[derive(Debug, thiserror::Error)]
#[error("(code: {code}) {message}")]
struct SqliteError {
    /// The extended result code.
    code: i32,
    message: String,
}

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

/// The number of virtual-machine steps between two checks for an interruption.
const STEPS_BETWEEN_CHECKS: i32 = 4_096;

/// The maximum number of prepared statements that a connection caches.
const STATEMENTS_CACHED_MAX: usize = 128;

/// When the write-ahead log has this many pages, a commit also writes them to the database file, which takes three more flushes. With
/// SQLite's default of 1,000, this happens too often. With more than about 4,000, reads are slower: the index of the log has one part
/// for that many pages, and a read searches all parts.
const CHECKPOINT_PAGES: u32 = 4_000;

/// The maximum size of the write-ahead log after a checkpoint, in bytes.
pub(super) const JOURNAL_BYTES_MAX: u64 = 64 * 1024 * 1024;
