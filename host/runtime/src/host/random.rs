//! `wasi:random/random`: the one source of randomness that a guest has.

use super::HostRefusal;
use crate::{bindings::wasi::random::random::Host, call::CallState};

/// The most bytes that one call gives.
const RANDOM_BYTES_MAX: u64 = 1024 * 1024;

/// Where the random bytes for guests come from.
pub trait RandomSource: Send + Sync {
    /// Fills a buffer.
    ///
    /// # Errors
    /// When there is no randomness to be had.
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

/// There is no randomness to be had.
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
