//! `wasi:random/random`: the only source of randomness of guests.

use super::HostRefusal;
use crate::{bindings::wasi::random::random::Host, call::CallState};

/// The maximum number of bytes per call.
const RANDOM_BYTES_MAX: u64 = 1024 * 1024;

/// A source of random bytes for guests.
pub trait RandomSource: Send + Sync {
    /// Fills a buffer.
    ///
    /// # Errors
    /// If the source fails.
    fn fill(&self, bytes: &mut [u8]) -> Result<(), RandomUnavailable>;
}

/// The random generator of the server's cryptographic library, seeded by the operating system.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemRandom;

impl RandomSource for SystemRandom {
    fn fill(&self, bytes: &mut [u8]) -> Result<(), RandomUnavailable> {
        aws_lc_rs::rand::fill(bytes).map_err(|_| RandomUnavailable)
    }
}

/// The error of a [`RandomSource`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the random generator failed")]
pub struct RandomUnavailable;

impl Host for CallState {
    fn get_random_bytes(&mut self, len: u64) -> wasmtime::Result<Vec<u8>> {
        let length = usize::try_from(len)
            .ok()
            .filter(|_| len <= RANDOM_BYTES_MAX)
            .ok_or(HostRefusal::RandomBytesExceeded(len))?;
        let mut bytes = vec![0; length];
        self.random.fill(&mut bytes).map_err(HostRefusal::from)?;
        Ok(bytes)
    }

    fn get_random_u64(&mut self) -> wasmtime::Result<u64> {
        let mut bytes = [0; 8];
        self.random.fill(&mut bytes).map_err(HostRefusal::from)?;
        Ok(u64::from_le_bytes(bytes))
    }
}
