//! Repeatable streams of random bytes, optionally with one flipped bit.

use aws_lc_rs::digest;
use parking_lot::Mutex;

use crate::host::{RandomError, RandomSource};

/// A pseudorandom stream of bytes: block `i` of stream `n` is the SHA-256 of the seed, `n` and `i`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stream {
    seed: [u8; 32],
    number: u64,
    flipped_bit: Option<u64>,
}

impl Stream {
    pub(crate) fn new(seed: [u8; 32], number: u64) -> Self {
        Self {
            seed,
            number,
            flipped_bit: None,
        }
    }

    /// Flips one bit of the stream.
    pub(crate) fn with_flipped_bit(self, bit: u64) -> Self {
        Self {
            flipped_bit: Some(bit),
            ..self
        }
    }

    fn block(&self, index: u64) -> digest::Digest {
        hashed(&[&self.seed, &self.number.to_le_bytes(), &index.to_le_bytes()])
    }

    /// Fills a buffer with the bytes of the stream from offset `from`.
    pub(crate) fn fill(&self, from: u64, bytes: &mut [u8]) {
        let blocks = (from / BLOCK_BYTES..).map(|index| self.block(index));
        let stream = blocks.flat_map(|block| block.as_ref().to_vec());
        let skipped = usize::try_from(from % BLOCK_BYTES).unwrap_or(0);
        for ((position, byte), drawn) in (from..).zip(bytes).zip(stream.skip(skipped)) {
            let flipped = self.flipped_bit.filter(|bit| bit / 8 == position);
            *byte = drawn ^ flipped.map_or(0, |bit| 1 << (bit % 8));
        }
    }
}

/// Returns two pseudorandom numbers, with which the caller picks a value and one of its bits.
pub(super) fn picked(seed: [u8; 32], pick: u32) -> (u64, u64) {
    let digest = hashed(&[b"pick", &seed, &pick.to_le_bytes()]);
    let mut numbers = digest.as_ref().chunks_exact(8).map(|bytes| {
        let bytes = bytes.iter();
        bytes.fold(0, |number, byte| (number << 8) | u64::from(*byte))
    });
    let mut next = || numbers.next().unwrap_or_default();
    (next(), next())
}

fn hashed(parts: &[&[u8]]) -> digest::Digest {
    let mut context = digest::Context::new(&digest::SHA256);
    for part in parts {
        context.update(part);
    }
    context.finish()
}

const BLOCK_BYTES: u64 = digest::SHA256_OUTPUT_LEN as u64;

/// A random source that returns the bytes of a stream, which can be replaced by another.
pub(crate) struct RepeatableRandom(Mutex<(Stream, u64)>);

impl RepeatableRandom {
    /// Creates a source at the start of an arbitrary stream.
    pub(crate) fn new() -> Self {
        Self(Mutex::new((Stream::new([0; 32], 0), 0)))
    }

    /// Switches to the start of a stream.
    pub(crate) fn begin(&self, stream: Stream) {
        *self.0.lock() = (stream, 0);
    }

    pub(crate) fn drawn_bits(&self) -> u64 {
        self.0.lock().1 * 8
    }
}

impl RandomSource for RepeatableRandom {
    fn fill(&self, bytes: &mut [u8]) -> Result<(), RandomError> {
        let mut state = self.0.lock();
        let (stream, offset) = *state;
        stream.fill(offset, bytes);
        state.1 = offset + u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(random: &RepeatableRandom, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        random.fill(&mut bytes).unwrap();
        bytes
    }

    #[test]
    fn the_sizes_of_draws_do_not_affect_a_stream() {
        let random = RepeatableRandom::new();
        random.begin(Stream::new([1; 32], 5));
        let whole = bytes(&random, 100);
        assert_eq!(random.drawn_bits(), 800);
        random.begin(Stream::new([1; 32], 5));
        let pieces = [1, 31, 33, 35]
            .map(|length| bytes(&random, length))
            .concat();
        assert_eq!(pieces, whole);
    }

    #[test]
    fn streams_depend_on_seed_number_and_flipped_bit() {
        let random = RepeatableRandom::new();
        let drawn = |stream| {
            random.begin(stream);
            bytes(&random, 64)
        };
        let stream = Stream::new([1; 32], 5);
        let plain = drawn(stream);
        assert_ne!(drawn(Stream::new([2; 32], 5)), plain);
        assert_ne!(drawn(Stream::new([1; 32], 6)), plain);
        let mut flipped = drawn(stream.with_flipped_bit(300));
        assert_ne!(flipped, plain);
        flipped[37] ^= 1 << 4;
        assert_eq!(flipped, plain);
    }
}
