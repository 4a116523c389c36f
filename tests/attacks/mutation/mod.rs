//! Random mutations of valid input with a fixed seed, one test per parser.
//!
//! `KEYWRIGHT_TEST_MUTATION_SECONDS` makes each test run for that long instead of a fixed number of rounds, and
//! `KEYWRIGHT_TEST_SEED` starts from another seed. To attack a release build:
//!
//! ```text
//! KEYWRIGHT_TEST_MUTATION_SECONDS=600 cargo test --release --workspace --test attacks -- mutation --test-threads 8
//! ```

#![expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a test ends when what it needs is not there"
)]

mod certificates;
mod generator;
mod http;
mod requests;
