//! Random numbers and mutations, reproducible from a seed.

use std::{
    env,
    time::{Duration, Instant},
};

use rand::{RngExt, SeedableRng, rngs::ChaCha12Rng};

/// Random numbers.
pub(super) struct Random(ChaCha12Rng);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self(ChaCha12Rng::seed_from_u64(seed))
    }

    /// Returns a number below `bound`, or 0 if `bound` is 0.
    pub(super) fn below(&mut self, bound: usize) -> usize {
        self.0.random_range(0..bound.max(1))
    }

    pub(super) fn byte(&mut self) -> u8 {
        self.0.random()
    }

    pub(super) fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len())]
    }

    /// Changes bytes in one to four ways, sometimes by inserting words of the dictionary.
    pub(super) fn mutated(&mut self, bytes: &[u8], dictionary: &[&[u8]]) -> Vec<u8> {
        let mut bytes = bytes.to_vec();
        for _ in 0..=self.below(4) {
            self.mutate(&mut bytes, dictionary);
        }
        bytes
    }

    fn mutate(&mut self, bytes: &mut Vec<u8>, dictionary: &[&[u8]]) {
        let at = self.below(bytes.len() + 1);
        let end = (at + 1 + self.below(8)).min(bytes.len());
        match self.below(10) {
            0 => {
                let bit = 1 << self.below(8);
                if let Some(byte) = bytes.get_mut(at) {
                    *byte ^= bit;
                }
            }
            1 => {
                let random = self.byte();
                if let Some(byte) = bytes.get_mut(at) {
                    *byte = random;
                }
            }
            2 => drop(bytes.drain(at.min(end)..end)),
            3 => bytes.truncate(at),
            4 => {
                let from = self.below(bytes.len() + 1);
                let to = (from + self.below(64)).min(bytes.len());
                let copy = bytes[from..to].to_vec();
                bytes.splice(at..at, copy);
            }
            5 => {
                let copy = bytes[at.min(end)..end].repeat(1 + self.below(1_000));
                bytes.splice(at..at, copy);
            }
            6 => {
                let random: Vec<u8> = (0..=self.below(8)).map(|_| self.byte()).collect();
                bytes.splice(at..at, random);
            }
            _ => {
                let word = self.pick(dictionary).to_vec();
                // The word replaces bytes, or is inserted.
                let behind = if self.below(2) == 0 { at } else { end.max(at) };
                bytes.splice(at..behind, word);
            }
        }
    }
}

/// The rounds of a test: a fixed number, or until a time.
pub(super) struct Rounds {
    pub(super) seed: u64,
    number: usize,
    count: usize,
    until: Option<Instant>,
}

impl Rounds {
    /// Limits the rounds to `count`, or to the duration in `KEYWRIGHT_TEST_MUTATION_SECONDS`.
    pub(super) fn new(seed: u64, count: usize) -> Self {
        let number = |name: &str| env::var(name).ok().map(|text| text.parse().unwrap());
        let seconds = number("KEYWRIGHT_TEST_MUTATION_SECONDS");
        Self {
            seed: number("KEYWRIGHT_TEST_SEED").unwrap_or(seed),
            number: 0,
            count,
            until: seconds.map(|seconds| Instant::now() + Duration::from_secs(seconds)),
        }
    }

    /// Returns the number of the next round, if any. Each round has its own random numbers, so that it can be repeated
    /// alone.
    pub(super) fn next(&mut self) -> Option<(usize, Random)> {
        let is_next = match self.until {
            Some(until) => Instant::now() < until,
            None => self.number < self.count,
        };
        let number = self.number;
        self.number += 1;
        let seed = self.seed.wrapping_add(u64::try_from(number).unwrap());
        if !is_next {
            println!("{number} rounds from the seed {}", self.seed);
        }
        is_next.then(|| (number, Random::new(seed)))
    }
}

/// The number of rounds between checks of the log.
pub(super) const ROUNDS_BETWEEN_CHECKS: usize = 50;
