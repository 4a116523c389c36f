//! The entropy test: verifies that a generator's values depend only on the host's randomness, and contain as many random
//! bits as the plugin declares.
//!
//! The language runtimes in guests have their own random generators, which can be constant: each fresh instance then
//! generates the same secret. A single value does not reveal this. The test therefore generates many values, each in a fresh
//! instance and from a repeatable stream of random bytes ([`stream`]), with the first of the `examples` in the parameters
//! schema, or without parameters if there are none. It checks five rules, in this order:
//!
//! 1. The same stream yields the same value ([`EntropyFault::Unrepeatable`]).
//! 2. Different streams change every secret part of the value ([`EntropyFault::Constant`]).
//! 3. Each value draws at least the declared number of bits ([`EntropyFault::TooFewDrawn`]).
//! 4. The drawn bits are used: flipping a single bit changes the value ([`EntropyFault::Unused`]).
//! 5. Values do not repeat ([`EntropyFault::Repeated`]), and the frequencies of their characters permit the declared bits
//!    ([`EntropyFault::Biased`]).
//!
//! [`statistics`] and [`positions`] define the measures and their bounds. Each of them refuses a correct plugin with a
//! probability below 10⁻⁹. The streams are derived from the component's digest, so the verdict is deterministic, and an author
//! can't prepare for it, as a component can't contain its own digest. The test is the same for all components, except those
//! with slow calls ([`Effort`]): their few values suffice to find constant or unrepeatable values and too few drawn bits, but
//! not skewed characters. [`EntropyReport`] has the number of values.
//!
//! The test does not detect deliberate misbehaviour in rare calls, nor anything other than violations of these rules.

mod fault;
mod observed;
mod positions;
mod statistics;
mod stream;

use std::{collections::BTreeMap, time::Duration};

use serde::{Deserialize, Serialize};

pub use fault::EntropyFault;
pub(crate) use observed::Effort;
use observed::Observed;
use statistics::{IMPLAUSIBLE, ln_chance_of_at_most, ln_chance_of_repetitions};
pub(crate) use stream::{RepeatableRandom, Stream};

/// The version of these rules. Verdicts of other versions are discarded.
pub(crate) const RULES_VERSION: u32 = 2;

/// The fraction of the expected bits that must affect the value. The rest allows for variation between streams.
const COUNTING_SHARE: f64 = 7.0 / 8.0;

/// The result of an entropy test.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct EntropyReport {
    /// The declared minimum of random bits in a value.
    pub declared_bits: u32,
    /// The minimum of bits drawn for a value.
    pub drawn_bits: u64,
    /// The number of values, each from another stream.
    pub values: u32,
    /// The number of flipped bits, each in a separate call.
    pub flipped_bits: u32,
    /// The violated rules, in order. A violation often entails violations of later rules.
    pub faults: Vec<EntropyFault>,
}

impl EntropyReport {
    /// Returns the first violated rule, if any.
    #[must_use]
    pub fn fault(&self) -> Option<&EntropyFault> {
        self.faults.first()
    }
}

/// A generator under test.
pub(crate) trait Subject {
    /// The error of a failed generation.
    type Failure;

    /// Generates a value from a stream.
    ///
    /// # Errors
    /// If generation fails.
    fn make(&mut self, stream: Stream) -> Result<Made, Self::Failure>;

    /// Returns the processor time used by all calls so far.
    fn computed(&self) -> Duration;
}

/// A generated value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Made {
    /// The value, as text.
    pub(crate) text: String,
    /// Its secret parts as text, by their paths; the whole value if no part is secret.
    pub(crate) secrets: BTreeMap<String, String>,
    /// The number of bits drawn for it.
    pub(crate) drawn_bits: u64,
}

/// Tests a generator that declares this number of random bits, with streams derived from `seed`.
///
/// # Errors
/// If a value can't be generated.
pub(crate) fn examine<S: Subject>(
    subject: &mut S,
    declared_bits: u32,
    seed: [u8; 32],
    effort: Effort,
) -> Result<EntropyReport, S::Failure> {
    let observed = Observed::of(subject, declared_bits, seed, effort)?;
    Ok(EntropyReport {
        declared_bits,
        drawn_bits: observed.drawn_bits(),
        values: count(&observed.values),
        flipped_bits: observed.flipped_bits,
        faults: observed.faults(),
    })
}

impl Observed {
    /// Returns the minimum of bits drawn for a value.
    fn drawn_bits(&self) -> u64 {
        let drawn = self.values.iter().map(|made| made.drawn_bits);
        drawn.min().unwrap_or_default()
    }

    fn faults(&self) -> Vec<EntropyFault> {
        [
            (!self.is_repeatable).then_some(EntropyFault::Unrepeatable),
            self.constant(),
            self.too_few_drawn(),
            self.unused(),
            self.repeated(),
            positions::biased(self.declared_bits, &self.values),
        ]
        .into_iter()
        .flatten()
        .collect()
    }

    /// Checks that no secret part is the same in every value.
    fn constant(&self) -> Option<EntropyFault> {
        let (first, others) = self.values.split_first()?;
        let is_constant = |(place, text): &(&String, &String)| {
            others
                .iter()
                .all(|made| made.secrets.get(*place) == Some(*text))
        };
        let (place, _) = first.secrets.iter().find(is_constant)?;
        Some(EntropyFault::Constant {
            place: place.clone(),
            values: count(&self.values),
        })
    }

    fn too_few_drawn(&self) -> Option<EntropyFault> {
        let is_enough = self.drawn_bits() >= u64::from(self.declared_bits);
        (!is_enough).then_some(EntropyFault::TooFewDrawn {
            drawn_bits: self.drawn_bits(),
            declared_bits: self.declared_bits,
        })
    }

    /// Checks that the number of bits that affect the value is plausible.
    fn unused(&self) -> Option<EntropyFault> {
        let shares = self.values.iter().map(|made| {
            let drawn = bits(made.drawn_bits);
            f64::from(self.declared_bits).min(drawn) / drawn.max(1.0)
        });
        let mean_share = shares.sum::<f64>() / f64::from(count(&self.values));
        let expected_share = COUNTING_SHARE * mean_share;
        let chance = ln_chance_of_at_most(self.counting_bits, self.flipped_bits, expected_share);
        (chance < IMPLAUSIBLE).then_some(EntropyFault::Unused {
            flipped_bits: self.flipped_bits,
            counting_bits: self.counting_bits,
            drawn_bits: self.drawn_bits(),
            declared_bits: self.declared_bits,
        })
    }

    /// Checks that the number of equal values is plausible.
    fn repeated(&self) -> Option<EntropyFault> {
        let mut alike: BTreeMap<&BTreeMap<String, String>, u32> = BTreeMap::new();
        for made in &self.values {
            *alike.entry(&made.secrets).or_default() += 1;
        }
        let pairs: u32 = alike.values().map(|count| count * (count - 1) / 2).sum();
        let values = count(&self.values);
        let chance = ln_chance_of_repetitions(pairs, values, self.declared_bits);
        (chance < IMPLAUSIBLE).then_some(EntropyFault::Repeated {
            values,
            pairs,
            declared_bits: self.declared_bits,
        })
    }
}

fn count(values: &[Made]) -> u32 {
    u32::try_from(values.len()).unwrap_or(u32::MAX)
}

fn bits(number: u64) -> f64 {
    u32::try_from(number).map_or(f64::from(u32::MAX), f64::from)
}

#[cfg(test)]
mod tests;
