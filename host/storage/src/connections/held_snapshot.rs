//! A read transaction that stays open while no process writes to a SQLite file.
//!
//! Each read locks its snapshot of the file. While another connection of the process holds the same lock, SQLite only counts the
//! holders. Otherwise, a read makes two system calls, during which reads on other threads wait.
//!
//! While a snapshot is held, the write-ahead log can't be written from its beginning again, and would grow. So no snapshot is held
//! from before a group of writes begins until nothing, in any process, has been written for an interval.

use parking_lot::Mutex;

use super::sqlite::SqliteConnection;
use crate::{row::Columns, statement::statement};

/// The snapshot. `None` before its connection is opened, and after it is closed.
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
    pub(super) fn suspend(&self) {
        let mut holder = self.0.lock();
        if let Some(open) = &mut *holder {
            open.is_suspended = true;
            if open.release().is_err() {
                *holder = None;
            }
        }
    }

    /// Lets [`Self::renew`] hold a snapshot again.
    pub(super) fn resume(&self) {
        if let Some(holder) = &mut *self.0.lock() {
            holder.is_suspended = false;
        }
    }

    /// Releases the snapshot and closes the connection.
    pub(super) fn close(&self) {
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
    use std::{fs, path::PathBuf, time::Duration};

    use tempfile::TempDir;

    use super::*;
    use crate::connections::{FileWatch, SqliteFile, SqliteReaders, SqliteSettings, Writer};

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
}
