use core::convert::Infallible;

use rand_core::{TryCryptoRng, TryRng};

/// The host's randomness as a cryptographically secure random number generator.
///
/// The source is `wasi:random/random.get-random-bytes`. Bytes are fetched [`BUFFER_BYTES`] at a time, because a call to the host
/// costs more than the bytes.
pub struct HostRandom<F> {
    source: F,
    buffer: std::vec::IntoIter<u8>,
}

impl<F: FnMut(u64) -> Vec<u8>> HostRandom<F> {
    /// Creates a generator that reads from a source of bytes.
    pub fn new(source: F) -> Self {
        Self {
            source,
            buffer: Vec::new().into_iter(),
        }
    }

    /// Returns the next byte.
    ///
    /// Retries if the host breaks its contract and returns no bytes. The call then fails at its deadline instead of returning a
    /// value that is not random.
    fn byte(&mut self) -> u8 {
        loop {
            if let Some(byte) = self.buffer.next() {
                return byte;
            }
            self.buffer = (self.source)(BUFFER_BYTES).into_iter();
        }
    }

    fn bytes<const N: usize>(&mut self) -> [u8; N] {
        core::array::from_fn(|_| self.byte())
    }
}

impl<F: FnMut(u64) -> Vec<u8>> TryRng for HostRandom<F> {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        Ok(u32::from_le_bytes(self.bytes()))
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        Ok(u64::from_le_bytes(self.bytes()))
    }

    fn try_fill_bytes(&mut self, destination: &mut [u8]) -> Result<(), Infallible> {
        destination.fill_with(|| self.byte());
        Ok(())
    }
}

impl<F: FnMut(u64) -> Vec<u8>> TryCryptoRng for HostRandom<F> {}

/// The number of bytes to fetch at once.
const BUFFER_BYTES: u64 = 256;

#[cfg(test)]
mod tests {
    use rand_core::Rng;

    use super::*;

    #[test]
    fn bytes_of_the_source_are_used_once_and_in_order() {
        let mut next = 0_u8;
        let mut calls = 0;
        let mut random = HostRandom::new(|count| {
            calls += 1;
            (0..count)
                .map(|_| {
                    next = next.wrapping_add(1);
                    next
                })
                .collect()
        });
        assert_eq!(random.next_u32(), u32::from_le_bytes([1, 2, 3, 4]));
        assert_eq!(
            random.next_u64(),
            u64::from_le_bytes([5, 6, 7, 8, 9, 10, 11, 12])
        );
        let mut bytes = [0; 300];
        random.fill_bytes(&mut bytes);
        let expected: Vec<u8> = (13..=u8::MAX).chain(0..=56).collect();
        assert_eq!(bytes.as_slice(), expected);
        assert_eq!(calls, 2);
    }
}
