//! Generating the values for an entropy test, within a limit of processor time.

use std::time::Duration;

use super::{Made, Stream, Subject, count, stream};

/// The maximum number of values.
pub(super) const VALUES_MAX: u32 = 2_000;
/// The maximum number of flipped bits, each in a separate call.
pub(super) const FLIPS_MAX: u32 = 1_024;

/// The effort of a test: [`VALUES_MAX`] values and [`FLIPS_MAX`] flipped bits, unless these calls would exceed a limit of
/// processor time.
///
/// The limit is on processor time, so the load of the machine makes no difference.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Effort {
    /// The maximum processor time of all calls.
    pub(super) computing_max: Duration,
    /// The number of values, and of flipped bits, for generators that are too slow for the full test.
    pub(super) few: u32,
}

impl Effort {
    /// For a server that loads a component, once per component. Generators with calls of more than three milliseconds, such as
    /// searches for large primes, get the reduced test, so that a server with several of them starts within seconds.
    ///
    /// Sixteen flips suffice to refuse a generator that uses none of its drawn bits; eight would not.
    pub(crate) const AT_START: Self = Self {
        computing_max: Duration::from_secs(10),
        few: 16,
    };
    /// For an author's test.
    pub(crate) const AT_TEST: Self = Self {
        computing_max: Duration::from_mins(1),
        few: 256,
    };

    /// Whether the full test fits, given the processor time of one call.
    fn allows_all(self, call: Duration) -> bool {
        call.saturating_mul(VALUES_MAX + FLIPS_MAX) <= self.computing_max
    }
}

/// The observations of a generator.
pub(super) struct Observed {
    /// The declared random bits.
    pub(super) declared_bits: u32,
    /// Whether the same stream yielded the same value twice.
    pub(super) is_repeatable: bool,
    /// The values, each from another stream.
    pub(super) values: Vec<Made>,
    /// The number of flipped bits, each in a separate call.
    pub(super) flipped_bits: u32,
    /// The number of flipped bits that changed the value.
    pub(super) counting_bits: u32,
}

impl Observed {
    /// Runs a generator with streams derived from `seed`.
    ///
    /// # Errors
    /// If a value can't be generated.
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

    /// Flips one bit, picked at random from all bits drawn for the values.
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
