//! The connections to a database.
//!
//! [`Connections`] run read-only statements. A [`Writer`] runs transactions that write.

mod group_commit;
mod pool;
mod postgres;
mod readers;
mod sqlite;
mod sqlite_file;
mod transaction;
mod writer;

pub use pool::PoolOccupancy;
pub(crate) use pool::{ActorSlots, Engine, Queued, ServerHealth, WaitCounter};
pub(crate) use postgres::{PostgresConnections, PostgresTarget, connect, milliseconds, within};
pub(crate) use readers::{Connections, SqliteReaders};
pub(crate) use sqlite::{SqliteConnection, SqliteSettings};
pub(crate) use sqlite_file::{FileWatch, SqliteFile};
pub(crate) use transaction::{Ended, Transaction};
#[cfg(test)]
pub(crate) use writer::PROBE;
pub(crate) use writer::Writer;

#[cfg(test)]
mod tests;
