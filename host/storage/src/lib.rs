//! Credentials in a SQL database. The only crate with sqlx.
//!
//! [`SqliteDatabase`] opens a file, brings its schema up to date and hands out repositories, one for each noun. Each noun has
//! a module of its own, with its SQL in one place: `credential/statements.rs` beside `credential/find.rs`. The SQL keeps to
//! what both SQLite and PostgreSQL take; what only one of them can do stands apart under the engine's name.
//!
//! To add a query: write it as a constant among the statements of its noun, add it to the list that the query-plan test
//! walks, and give the repository a method that runs it once, however many rows it returns.
//!
//! Writes go through one connection, so that writers wait for each other in memory and not for a lock in the file. Reads go
//! through a pool and never wait for a writer.

mod connections;
mod credential;
mod database;
mod encryption_key;
mod failure;
mod permission;
#[cfg(test)]
mod query_plan;

pub use connections::PoolOccupancy;
pub use credential::SqliteCredentialRepository;
pub use database::{DatabaseOccupancy, DatabaseUnusable, SqliteDatabase, SqliteOptions};
pub use encryption_key::{EncryptionKeyRow, SqliteEncryptionKeyRepository};
pub use permission::SqlitePermissionRepository;
