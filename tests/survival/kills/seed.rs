//! Reproducible randomness.

use std::{fmt::Display, str::FromStr};

use rand::{Rng, SeedableRng, rngs::ChaCha12Rng};

/// The source of a run's random choices.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seed(u64);

impl Seed {
    /// Uses `KEYWRIGHT_TEST_SEED`, or a new seed. It is printed, and shown if the test fails.
    pub(super) fn of_this_run() -> Self {
        let seed = variable("KEYWRIGHT_TEST_SEED").unwrap_or_else(|| rand::rng().next_u64());
        println!("KEYWRIGHT_TEST_SEED={seed}");
        Self(seed)
    }

    /// Returns the random choices of one worker.
    pub(super) fn choices(self, number: usize) -> ChaCha12Rng {
        let mut choices = ChaCha12Rng::seed_from_u64(self.0);
        choices.set_stream(number.try_into().unwrap());
        choices
    }
}

/// Returns the number of rounds of a run.
pub(super) fn rounds(default: usize) -> usize {
    variable("KEYWRIGHT_TEST_ROUNDS").unwrap_or(default)
}

fn variable<T: FromStr<Err: Display>>(name: &str) -> Option<T> {
    let text = std::env::var(name).ok()?;
    let number = text
        .parse()
        .map_err(|cause: T::Err| format!("{name}: {cause}"));
    Some(number.unwrap())
}
