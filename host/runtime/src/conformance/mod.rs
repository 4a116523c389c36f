//! Entropy conformance: whether what a generator makes comes of the host's randomness alone, and holds as much of it as
//! the plugin says of itself.
//!
//! The runtimes that guests of other languages carry have random generators of their own, and these can be constant: each
//! fresh instance then makes the same secret. Nothing of that shows in one value. So a generator is made to generate, in
//! fresh instances, from streams that the host can give again ([`stream`]), with the first of the `examples` in its
//! parameters schema, or without parameters where there are none. Five rules are held, in this order:
//!
//! 1. The same stream twice gives the same value ([`EntropyFault::Unrepeatable`]).
//! 2. Another stream gives another value, in every secret part of it ([`EntropyFault::Constant`]).
//! 3. As many bits are drawn as are declared, for each value ([`EntropyFault::TooFewDrawn`]).
//! 4. What is drawn is used: a single flipped bit gives another value ([`EntropyFault::Unused`]).
//! 5. Many values hold no two that are alike ([`EntropyFault::Repeated`]), and their characters no less than what is
//!    declared ([`EntropyFault::Biased`]).
//!
//! What is measured against the declared bits, and how sure the host is, is in [`statistics`] and [`positions`]. A plugin
//! that keeps the contract is refused with a probability below 10⁻⁹ for each of these measurements. The streams follow
//! from the component's digest, so a verdict is the same each time, and an author, who can't put the digest into the
//! component, can't prepare for it. Each component is looked at to the same extent, but for those whose calls compute for
//! long ([`Effort`]): of them few values are seen, which is enough to find what is constant, is not repeatable or draws too
//! little, but not that characters come in the wrong frequencies. [`EntropyReport`] says how many they were.
//!
//! What a plugin does on purpose in rare calls is not found so, and more is not found than what breaks these rules.

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

/// The version of these rules. A verdict by another version is made anew.
pub(crate) const RULES_VERSION: u32 = 2;

/// The part of the bits which must count, if as many count as are declared: the rest is for what the streams differ in.
const COUNTING_SHARE: f64 = 7.0 / 8.0;

/// What was looked at, and what came of it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct EntropyReport {
    /// How many random bits the plugin says that go into a value at least.
    pub declared_bits: u32,
    /// How many bits were drawn for a value at least.
    pub drawn_bits: u64,
    /// How many values were made, each of another stream.
    pub values: u32,
    /// How many bits were flipped, each in a call of its own.
    pub flipped_bits: u32,
    /// The rules that are not kept, in their order. Who breaks one often breaks those after it too.
    pub faults: Vec<EntropyFault>,
}

impl EntropyReport {
    /// The first rule that is not kept, if there is one.
    #[must_use]
    pub fn fault(&self) -> Option<&EntropyFault> {
        self.faults.first()
    }
}

/// What is looked at.
pub(crate) trait Subject {
    /// Why there may be no value.
    type Failure;

    /// Makes a value out of a stream.
    ///
    /// # Errors
    /// When there is none.
    fn make(&mut self, stream: Stream) -> Result<Made, Self::Failure>;

    /// How long has been computed so far. From one call to the next, it grows by what the call took of a processor.
    fn computed(&self) -> Duration;
}

/// A value that was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Made {
    /// The value, as text.
    pub(crate) text: String,
    /// Its secret parts as text, by their places in it; the value as a whole where none is secret.
    pub(crate) secrets: BTreeMap<String, String>,
    /// How many bits were drawn for it.
    pub(crate) drawn_bits: u64,
}

/// Looks at what makes values that are to hold so many random bits, on streams of this seed.
///
/// # Errors
/// When a value could not be made.
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
    /// How many bits were drawn for a value at least.
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

    /// A secret part that is the same in every value.
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

    /// Whether fewer bits count than there should, beyond chance.
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

    /// Whether values are alike more often than chance has it.
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
