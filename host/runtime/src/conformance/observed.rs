//! What is made of a generator to look at it, and how much.

use std::time::Duration;

use super::{Made, Stream, Subject, count, stream};

/// The most values that are looked at.
pub(super) const VALUES_MAX: u32 = 2_000;
/// The most bits that are flipped, each by itself in a call of its own.
pub(super) const FLIPS_MAX: u32 = 1_024;

/// How much a generator may be looked at: with [`VALUES_MAX`] values and [`FLIPS_MAX`] flipped bits, unless all these calls
/// would compute for longer than this.
///
/// It is computing that counts, not time that passes: what else a machine does, and how long it stands still, makes no
/// difference.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Effort {
    /// How long all calls may compute together.
    pub(super) computing_max: Duration,
    /// How many values are made, and how many bits flipped, of a generator for which that is too little.
    pub(super) few: u32,
}

impl Effort {
    /// When a server loads a component, which happens once for each. Where a call computes for more than three milliseconds,
    /// as those that look for large primes do, few are made, so that a server which has several such plugins still
    /// starts within seconds.
    ///
    /// Sixteen flips are enough to refuse what has no use for any bit that it draws; eight would not be.
    pub(crate) const AT_START: Self = Self {
        computing_max: Duration::from_secs(10),
        few: 16,
    };
    /// When an author tests.
    pub(crate) const AT_TEST: Self = Self {
        computing_max: Duration::from_mins(1),
        few: 256,
    };

    /// Whether all calls can be made where one of them computes for so long.
    fn allows_all(self, call: Duration) -> bool {
        call.saturating_mul(VALUES_MAX + FLIPS_MAX) <= self.computing_max
    }
}

/// What a generator has made.
pub(super) struct Observed {
    /// How many bits it declares.
    pub(super) declared_bits: u32,
    /// Whether the same stream gave the same the second time.
    pub(super) is_repeatable: bool,
    /// Values, each of another stream.
    pub(super) values: Vec<Made>,
    /// How many bits were flipped, each in a call of its own.
    pub(super) flipped_bits: u32,
    /// How many of them gave another value.
    pub(super) counting_bits: u32,
}

impl Observed {
    /// Makes a generator generate, on streams of this seed.
    ///
    /// # Errors
    /// When a value could not be made.
    pub(super) fn of<S: Subject>(
        subject: &mut S,
        declared_bits: u32,
        seed: [u8; 32],
        effort: Effort,
    ) -> Result<Self, S::Failure> {
        let end = subject.computed().saturating_add(effort.computing_max);
        let first = subject.make(Stream::new(seed, 0))?;
        let is_repeatable = subject.make(Stream::new(seed, 0))? == first;
        let mut observed = Self {
            declared_bits,
            is_repeatable,
            values: vec![first],
            flipped_bits: 0,
            counting_bits: 0,
        };
        let mut durations = Vec::new();
        for number in 1..effort.few {
            let begun = subject.computed();
            let made = subject.make(Stream::new(seed, number.into()))?;
            observed.values.push(made);
            durations.push(subject.computed().saturating_sub(begun));
        }
        let (values_max, flips_max) = if effort.allows_all(median(durations)) {
            (VALUES_MAX, FLIPS_MAX)
        } else {
            (effort.few, effort.few)
        };
        for number in effort.few..values_max {
            if subject.computed() >= end {
                break;
            }
            let made = subject.make(Stream::new(seed, number.into()))?;
            observed.values.push(made);
        }
        for number in 0..flips_max {
            if number >= effort.few && subject.computed() >= end {
                break;
            }
            observed.flip(subject, seed, number)?;
        }
        Ok(observed)
    }

    /// Flips one bit, picked at random of all that were drawn for the values.
    fn flip<S: Subject>(
        &mut self,
        subject: &mut S,
        seed: [u8; 32],
        number: u32,
    ) -> Result<(), S::Failure> {
        let (pick, bit) = stream::picked(seed, number);
        let value = pick % u64::from(count(&self.values)).max(1);
        let Some(made) = usize::try_from(value)
            .ok()
            .and_then(|value| self.values.get(value))
        else {
            return Ok(());
        };
        let flipped = Stream::new(seed, value).with_flipped_bit(bit % made.drawn_bits.max(1));
        self.counting_bits += u32::from(subject.make(flipped)?.secrets != made.secrets);
        self.flipped_bits += 1;
        Ok(())
    }
}

fn median(mut durations: Vec<Duration>) -> Duration {
    durations.sort_unstable();
    durations
        .get(durations.len() / 2)
        .copied()
        .unwrap_or_default()
}
