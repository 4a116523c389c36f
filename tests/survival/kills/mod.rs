//! Servers that are killed at random times under a mixed load of writes: every acknowledged write must survive, and no
//! write may be partial.
//!
//! A run uses one store for many [`rounds`]. In each round, [`worker`]s write until the server is killed. A worker owns
//! its names, so it knows the exact expected state: all acknowledged writes, and for the one request in progress, all
//! or nothing. Less is known about what all workers write to ([`shared`]), but nothing may be lost or made up.
//!
//! A failed run prints its seed. With `KEYWRIGHT_TEST_SEED`, a run sends the same requests in the same order, with
//! kills after the same times. `KEYWRIGHT_TEST_ROUNDS` sets the number of rounds.
//!
//! Only processes are killed. The effects of a power failure are not tested.

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
