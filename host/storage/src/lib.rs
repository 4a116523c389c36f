//! Credentials in a SQL database. The only crate that depends on sqlx.
//!
//! [`Database`] opens a SQLite file or a PostgreSQL database, migrates its schema and implements the ports of each kind of record,
//! such as credentials or permissions. Each kind has its own module, with its SQL in a submodule `statements`. The SQL is
//! common to both engines, and the ports use `Statement` and `Row`; engine-specific code is named after its engine.
//! `docs/decisions/storage.md` lists the statements that differ.
//!
//! To add a query: write it as a constant in the `statements` of its module, add it to the list of the query-plan test, and add
//! a repository method that runs it once for all rows, not once per row.
//!
//! Each read sees a single state of the database. Reads use a pool and never wait for a writer. Writes are transactions,
//! isolated from each other. To write, pass a function to `Writer::transaction`: it receives a `Transaction` and must commit it
//! or roll it back. On SQLite, transactions run one after the other on one connection, so that writers wait in memory and not
//! for a file lock. Concurrent transactions share one commit (`connections/group_commit.rs`). On PostgreSQL, where many servers
//! write, transactions are serializable, except batches (`credential/append_batches.rs`): the database rejects conflicting
//! transactions, and the writer retries them.

mod backup;
mod check;
mod connections;
mod credential;
mod database;
mod encryption_key;
mod error;
mod lease;
mod migrations;
mod permission;
mod postgres;
mod retention;
mod sqlite;
mod statement;

pub use backup::{BackedUp, BackupError, back_up};
pub use connections::PoolOccupancy;
pub use database::{Database, DatabaseOccupancy, DatabaseOptions};
pub use encryption_key::BATCH_BYTES_MAX;
pub use error::DatabaseOpenError;
pub use postgres::PostgresOptions;
pub use sqlite::{SqliteOptions, sync_folder_of};

#[cfg(test)]
mod tests {
    mod query_plan;
}
