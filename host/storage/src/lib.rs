//! Credentials in a SQL database. The only crate with sqlx.
//!
//! [`Database`] opens a file of SQLite or a database of PostgreSQL, brings its schema up to date and hands out repositories,
//! one for each noun. Each noun has a module of its own, with its SQL in one place: `credential/statements.rs` beside
//! `credential/find.rs`. The SQL keeps to what both engines take, and repositories to `Statement` and `Row`;
//! what only one of them can do stands apart under the engine's name. Above `connections/`, what asks which engine it is is the search
//! by a part of a name, the adding of a version, the check, and the reading of the schema.
//!
//! To add a query: write it as a constant among the statements of its noun, add it to the list that the query-plan test
//! walks, and give the repository a method that runs it once, however many rows it returns.
//!
//! Reads are one statement each, go through a pool and never wait for a writer. Writes are transactions of which each has the
//! outcome that it would have alone: a function that gets a `Transaction` and ends it, handed to `Writer::transaction`. In
//! SQLite they take turns on one connection, so that writers wait for each other in memory and not for a lock in the file, and
//! those that come at once share one commit (`connections/turns/`). In PostgreSQL, where many servers write, they are
//! serializable: what can't be is refused by the database, and the writer does it again.

mod backup;
mod check;
mod connections;
mod credential;
mod database;
mod encryption_key;
mod failure;
mod key_rotation;
mod lease;
mod migrations;
mod permission;
mod postgres;
#[cfg(test)]
mod query_plan;
mod retention_clock;
mod row;
mod sqlite;
mod statement;

pub use backup::{BackedUp, BackupFailed, back_up};
pub use check::SqlCheckRepository;
pub use connections::PoolOccupancy;
pub use credential::SqlCredentialRepository;
pub use database::{Database, DatabaseOccupancy, DatabaseOptions, DatabaseUnusable};
pub use encryption_key::{EncryptionKeyRow, SqlEncryptionKeyRepository};
pub use key_rotation::{BATCH_BYTES_MAX, SqlKeyRotationRepository};
pub use lease::SqlLeases;
pub use permission::SqlPermissionRepository;
pub use postgres::PostgresOptions;
pub use retention_clock::SqlRetentionClock;
pub use sqlite::SqliteOptions;
