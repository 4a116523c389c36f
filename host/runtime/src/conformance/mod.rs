//! The entropy test: verifies that a generator's values depend only on the host's randomness, and contain as many random
//! bits as the plugin declares.
//!
//! The language runtimes in guests have their own random generators, which can be constant: each fresh instance then generates
//! the same secret. A single value does not reveal this. The test therefore generates many values, each in a fresh instance and
//! from a repeatable stream of random bytes ([`stream`]). The parameters are the first of the `examples` in the parameters
//! schema; without examples, the test uses no parameters. It checks these rules, in this order:
//!
//! 1. The same stream yields the same value ([`EntropyError::Unrepeatable`]).
//! 2. Different streams change every secret part of the value ([`EntropyError::Constant`]).
//! 3. Each value draws at least the declared number of bits ([`EntropyError::TooFewDrawn`]).
//! 4. The drawn bits are used: flipping a single bit changes the value ([`EntropyError::Unused`]).
//! 5. Values do not repeat ([`EntropyError::Repeated`]).
//! 6. The frequencies of the values' characters permit the declared bits ([`EntropyError::Biased`]).
//!
//! [`statistics`] defines the measures and their bounds. Each bound refuses a correct plugin with a probability below 10⁻⁹. The
//! streams are derived from the component's digest, so the result is deterministic. An author can't prepare a component for its
//! streams, because it can't contain its own digest.
//!
//! The test is the same for all components, except components with slow calls ([`Effort`]). Their few values suffice to find
//! constant or unrepeatable values and too few drawn bits, but not biased characters. [`EntropyReport`] has the number of values.
//!
//! The test detects only violations of these rules. It does not detect deliberate misbehavior in rare calls.

mod report;
mod statistics;
mod stream;

use std::{collections::BTreeMap, time::Duration};

pub(crate) use report::RULES_VERSION;
pub use report::{EntropyError, EntropyReport};
use statistics::{IMPLAUSIBLE, bits_below, ln_chance_of_at_most, ln_chance_of_repetitions};
use stream::picked;
pub(crate) use stream::{RepeatableRandom, Stream};

/// The maximum number of values.
const VALUES_MAX: u32 = 2_000;
/// The maximum number of flipped bits, each in a separate call.
const FLIPS_MAX: u32 = 1_024;
/// The maximum size of the secret parts of all values, in bytes, with their bookkeeping: enough for [`VALUES_MAX`] values of the
/// largest size that a server stores.
const SECRET_BYTES_MAX: usize = 128 * 1024 * 1024;
/// The bookkeeping for one secret part, in bytes.
const PART_BYTES: usize = 2 * size_of::<(String, String)>();
/// The fraction of the expected bits that must affect the value. The rest allows for variation between streams.
const EFFECTIVE_SHARE: f64 = 7.0 / 8.0;

/// A generator under test.
pub(crate) trait Subject {
    /// The error of a failed generation.
    type Failure;

    fn generate(&mut self, stream: Stream) -> Result<GeneratedValue, Self::Failure>;

    /// Returns the processor time used by all calls so far.
    fn processor_time(&self) -> Duration;
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GeneratedValue {
    /// The whole value; only compared with the value of the same stream.
    pub(crate) text: String,
    /// Its secret parts as text, by their paths; the whole value if no part is secret.
    pub(crate) secrets: BTreeMap<String, String>,
    /// The number of bits drawn for it.
    pub(crate) drawn_bits: u64,
}

/// Tests a generator that declares this number of random bits, with streams derived from `seed`.
pub(crate) fn examine<S: Subject>(
    subject: &mut S,
    declared_bits: u32,
    seed: [u8; 32],
    effort: Effort,
) -> Result<EntropyReport, S::Failure> {
    let observations = Observations::of(subject, declared_bits, seed, effort)?;
    Ok(EntropyReport {
        declared_bits,
        drawn_bits: observations.drawn_bits(),
        values: count(&observations.values),
        flipped_bits: observations.flipped_bits,
        faults: observations.faults(),
    })
}

/// The effort of a test: [`VALUES_MAX`] values and [`FLIPS_MAX`] flipped bits, unless these calls would exceed a limit of
/// processor time.
///
/// The limit is on processor time, so the load of the machine makes no difference.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Effort {
    /// The maximum processor time of all calls.
    processor_time_max: Duration,
    /// The number of values, and of flipped bits, for generators that are too slow for the full test.
    few: u32,
}

impl Effort {
    /// For a server that loads a component, once per component. Generators with calls of more than three milliseconds, such as
    /// searches for large primes, get the reduced test, so that a server with several of them starts within seconds.
    ///
    /// Sixteen flips suffice to refuse a generator that uses none of its drawn bits; eight would not.
    pub(crate) const AT_START: Self = Self {
        processor_time_max: Duration::from_secs(10),
        few: 16,
    };
    /// For an author's test.
    pub(crate) const AT_TEST: Self = Self {
        processor_time_max: Duration::from_mins(1),
        few: 256,
    };

    /// Returns whether the full test fits, given the processor time of one call.
    fn allows_all(self, call: Duration) -> bool {
        call.saturating_mul(VALUES_MAX + FLIPS_MAX) <= self.processor_time_max
    }
}

/// The observations of a generator.
struct Observations {
    /// The declared random bits.
    declared_bits: u32,
    /// Whether the same stream yielded the same value twice.
    is_repeatable: bool,
    /// The values, each from another stream, without their texts.
    values: Vec<GeneratedValue>,
    /// The size of their secret parts, in bytes.
    secret_bytes: usize,
    /// The number of flipped bits, each in a separate call.
    flipped_bits: u32,
    /// The number of flipped bits that changed the value.
    effective_bits: u32,
}

impl Observations {
    /// Runs a generator with streams derived from `seed`.
    fn of<S: Subject>(
        subject: &mut S,
        declared_bits: u32,
        seed: [u8; 32],
        effort: Effort,
    ) -> Result<Self, S::Failure> {
        let end = subject
            .processor_time()
            .saturating_add(effort.processor_time_max);
        let first = subject.generate(Stream::new(seed, 0))?;
        let is_repeatable = subject.generate(Stream::new(seed, 0))? == first;
        let mut observations = Self {
            declared_bits,
            is_repeatable,
            values: Vec::new(),
            secret_bytes: 0,
            flipped_bits: 0,
            effective_bits: 0,
        };
        observations.add(first);
        let mut durations = Vec::new();
        for number in 1..effort.few {
            let begun = subject.processor_time();
            let value = subject.generate(Stream::new(seed, number.into()))?;
            observations.add(value);
            durations.push(subject.processor_time().saturating_sub(begun));
        }
        let (values_max, flips_max) = if effort.allows_all(median(durations)) {
            (VALUES_MAX, FLIPS_MAX)
        } else {
            (effort.few, effort.few)
        };
        for number in effort.few..values_max {
            if subject.processor_time() >= end || observations.secret_bytes >= SECRET_BYTES_MAX {
                break;
            }
            let value = subject.generate(Stream::new(seed, number.into()))?;
            observations.add(value);
        }
        for number in 0..flips_max {
            if number >= effort.few && subject.processor_time() >= end {
                break;
            }
            observations.flip(subject, seed, number)?;
        }
        Ok(observations)
    }

    fn add(&mut self, value: GeneratedValue) {
        let parts = value.secrets.iter();
        let sizes = parts.map(|(path, part)| path.len() + part.len() + PART_BYTES);
        self.secret_bytes += sizes.sum::<usize>();
        let text = String::new();
        self.values.push(GeneratedValue { text, ..value });
    }

    /// Flips one bit, picked at random from all bits drawn for the values.
    fn flip<S: Subject>(
        &mut self,
        subject: &mut S,
        seed: [u8; 32],
        number: u32,
    ) -> Result<(), S::Failure> {
        let (pick, bit) = picked(seed, number);
        let index = pick % u64::from(count(&self.values)).max(1);
        let Some(value) = usize::try_from(index)
            .ok()
            .and_then(|index| self.values.get(index))
        else {
            return Ok(());
        };
        let flipped = Stream::new(seed, index).with_flipped_bit(bit % value.drawn_bits.max(1));
        self.effective_bits += u32::from(subject.generate(flipped)?.secrets != value.secrets);
        self.flipped_bits += 1;
        Ok(())
    }

    /// Returns the minimum of bits drawn for a value.
    fn drawn_bits(&self) -> u64 {
        let drawn = self.values.iter().map(|value| value.drawn_bits);
        drawn.min().unwrap_or_default()
    }

    fn faults(&self) -> Vec<EntropyError> {
        [
            (!self.is_repeatable).then_some(EntropyError::Unrepeatable),
            self.constant(),
            self.too_few_drawn(),
            self.unused(),
            self.repeated(),
            self.biased(),
        ]
        .into_iter()
        .flatten()
        .collect()
    }

    /// Checks that no secret part is the same in every value.
    fn constant(&self) -> Option<EntropyError> {
        let (first, others) = self.values.split_first()?;
        let is_constant = |(path, text): &(&String, &String)| {
            others
                .iter()
                .all(|value| value.secrets.get(*path) == Some(*text))
        };
        let (path, _) = first.secrets.iter().find(is_constant)?;
        Some(EntropyError::Constant {
            place: path.clone(),
            values: count(&self.values),
        })
    }

    fn too_few_drawn(&self) -> Option<EntropyError> {
        let is_enough = self.drawn_bits() >= u64::from(self.declared_bits);
        (!is_enough).then_some(EntropyError::TooFewDrawn {
            drawn_bits: self.drawn_bits(),
            declared_bits: self.declared_bits,
        })
    }

    /// Checks that the number of bits that affect the value is plausible.
    fn unused(&self) -> Option<EntropyError> {
        let shares = self.values.iter().map(|value| {
            let drawn = bits(value.drawn_bits);
            f64::from(self.declared_bits).min(drawn) / drawn.max(1.0)
        });
        let mean_share = shares.sum::<f64>() / f64::from(count(&self.values));
        let expected_share = EFFECTIVE_SHARE * mean_share;
        let chance = ln_chance_of_at_most(self.effective_bits, self.flipped_bits, expected_share);
        (chance < IMPLAUSIBLE).then_some(EntropyError::Unused {
            flipped_bits: self.flipped_bits,
            effective_bits: self.effective_bits,
            drawn_bits: self.drawn_bits(),
            declared_bits: self.declared_bits,
        })
    }

    /// Checks that the number of equal values is plausible.
    fn repeated(&self) -> Option<EntropyError> {
        let mut counts: BTreeMap<&BTreeMap<String, String>, u32> = BTreeMap::new();
        for value in &self.values {
            *counts.entry(&value.secrets).or_default() += 1;
        }
        let pairs: u32 = counts.values().map(|count| count * (count - 1) / 2).sum();
        let values = count(&self.values);
        let chance = ln_chance_of_repetitions(pairs, values, self.declared_bits);
        (chance < IMPLAUSIBLE).then_some(EntropyError::Repeated {
            values,
            pairs,
            declared_bits: self.declared_bits,
        })
    }

    /// Checks that the frequencies of characters permit the declared bits.
    fn biased(&self) -> Option<EntropyError> {
        let secrets: Vec<_> = self.values.iter().map(|value| &value.secrets).collect();
        let bound = bits_below(self.declared_bits, &secrets)?;
        Some(EntropyError::Biased {
            values: count(&self.values),
            held_bits: bound.bits,
            declared_bits: self.declared_bits,
            fixed_positions: bound.fixed_positions,
        })
    }
}

fn count(values: &[GeneratedValue]) -> u32 {
    u32::try_from(values.len()).unwrap_or(u32::MAX)
}

fn bits(number: u64) -> f64 {
    u32::try_from(number).map_or(f64::from(u32::MAX), f64::from)
}

fn median(mut durations: Vec<Duration>) -> Duration {
    durations.sort_unstable();
    durations
        .get(durations.len() / 2)
        .copied()
        .unwrap_or_default()
}

#[cfg(test)]
mod tests;
