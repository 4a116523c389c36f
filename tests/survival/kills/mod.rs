//! Servers that are killed at random moments under a mixed load of writes: every acknowledged write is there afterwards, and nothing
//! is there by half.
//!
//! A run goes on with one store for many [`rounds`]. In each, [`worker`]s write until the server is killed. A worker owns its names,
//! so it knows exactly what must be there: what was acknowledged, and of the one request that was under way, all or nothing. What
//! all workers write to together ([`shared`]) is known less exactly, but nothing of it may be lost or made up either.
//!
//! A run that fails prints its seed; the variable `KEYWRIGHT_TEST_SEED` has a run ask for the same things in the same order, and be
//! killed after the same times. `KEYWRIGHT_TEST_ROUNDS` has it go on for longer.
//!
//! What is killed are processes. What a machine loses that loses its power is not shown here.

#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test ends when something is not as it must be"
)]

mod audit;
mod backup;
mod certificates;
mod permissions;
mod plain;
mod records;
mod request;
mod rounds;
mod seed;
mod shared;
mod start;
mod store;
mod worker;
