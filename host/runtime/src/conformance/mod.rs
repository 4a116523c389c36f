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
//! from the component's digest: a component has one verdict everywhere, and its author, who can't put the digest into
//! the component, none that could be prepared for.
//!
//! What a plugin does on purpose in rare calls is not found so, and more is not found than what breaks these rules.

mod fault;
mod positions;
mod statistics;
mod stream;

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use serde::{Deserialize, Serialize};

pub use fault::EntropyFault;
use statistics::{IMPLAUSIBLE, ln_chance_of_at_most, ln_chance_of_repetitions};
pub(crate) use stream::{RepeatableRandom, Stream};

/// The version of these rules. A verdict by another version is made anew.
pub(crate) const RULES_VERSION: u32 = 1;

/// The most values that are looked at.
const VALUES_MAX: u32 = 2_000;
/// The fewest values that are looked at, however slow the generator is.
const VALUES_MIN: u32 = 8;
/// The most bits that are flipped, each by itself in a call of its own.
const FLIPS_MAX: u32 = 1_024;
/// The fewest bits that are flipped, however slow the generator is.
const FLIPS_MIN: u32 = 8;
/// The part of the bits which must count, if as many count as are declared: the rest is for what the streams differ in.
const COUNTING_SHARE: f64 = 7.0 / 8.0;

/// How long a generator may be looked at, by how long its fastest call took: a slow one is looked at with fewer values and
/// fewer flipped bits, but with eight of each at least. [`EntropyReport`] says with how many.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Effort(Duration);

impl Effort {
    /// When a server starts, which happens once for each component.
    pub(crate) const AT_START: Self = Self(Duration::from_secs(1));
    /// When an author tests.
    pub(crate) const AT_TEST: Self = Self(Duration::from_secs(30));

    /// How many calls there may be of each kind.
    fn calls(self, call: Duration, min: u32, max: u32) -> u32 {
        let calls = (self.0 / 2).as_nanos() / call.as_nanos().max(1);
        u32::try_from(calls).unwrap_or(max).clamp(min, max)
    }
}

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
    /// The rule that is not kept, if there is one.
    pub fault: Option<EntropyFault>,
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
    let stream = |number| Stream::new(seed, number);
    let mut fastest = Duration::MAX;
    let mut timed = |subject: &mut S| {
        let begun = Instant::now();
        let made = subject.make(stream(0));
        fastest = fastest.min(begun.elapsed());
        made
    };
    let first = timed(subject)?;
    let again = timed(subject)?;
    let mut report = EntropyReport {
        declared_bits,
        drawn_bits: first.drawn_bits,
        values: 1,
        flipped_bits: 0,
        fault: None,
    };
    if first != again {
        report.fault = Some(EntropyFault::Unrepeatable);
        return Ok(report);
    }
    report.values = effort.calls(fastest, VALUES_MIN, VALUES_MAX);
    let mut values = vec![first];
    for number in 1..report.values {
        values.push(subject.make(stream(u64::from(number)))?);
    }
    let drawn = values.iter().map(|made| made.drawn_bits);
    report.drawn_bits = drawn.min().unwrap_or_default();
    report.fault = constant(&values).or(too_few_drawn(&report));
    if report.fault.is_none() {
        report.flipped_bits = effort.calls(fastest, FLIPS_MIN, FLIPS_MAX);
        let counting = counting_flips(subject, &values, seed, report.flipped_bits)?;
        report.fault = unused(&report, counting, &values)
            .or_else(|| repeated(&report, &values))
            .or_else(|| positions::biased(declared_bits, &values));
    }
    Ok(report)
}

/// A secret part that is the same in every value.
fn constant(values: &[Made]) -> Option<EntropyFault> {
    let (first, others) = values.split_first()?;
    let is_constant = |(place, text): &(&String, &String)| {
        others
            .iter()
            .all(|made| made.secrets.get(*place) == Some(*text))
    };
    let (place, _) = first.secrets.iter().find(is_constant)?;
    Some(EntropyFault::Constant {
        place: place.clone(),
        values: count(values),
    })
}

fn too_few_drawn(report: &EntropyReport) -> Option<EntropyFault> {
    let is_enough = report.drawn_bits >= u64::from(report.declared_bits);
    (!is_enough).then_some(EntropyFault::TooFewDrawn {
        drawn_bits: report.drawn_bits,
        declared_bits: report.declared_bits,
    })
}

/// How many of so many bits, picked at random of all that were drawn for these values, give another value when they are
/// flipped.
fn counting_flips<S: Subject>(
    subject: &mut S,
    values: &[Made],
    seed: [u8; 32],
    flips: u32,
) -> Result<u32, S::Failure> {
    let mut counting = 0;
    for number in 0..flips {
        let (pick, bit) = stream::picked(seed, number);
        let value = pick % u64::from(count(values)).max(1);
        let Some(made) = usize::try_from(value)
            .ok()
            .and_then(|value| values.get(value))
        else {
            continue;
        };
        let flipped = Stream::new(seed, value).with_flipped_bit(bit % made.drawn_bits.max(1));
        counting += u32::from(subject.make(flipped)?.secrets != made.secrets);
    }
    Ok(counting)
}

/// Whether fewer bits count than there should, beyond chance.
fn unused(report: &EntropyReport, counting: u32, values: &[Made]) -> Option<EntropyFault> {
    let shares = values.iter().map(|made| {
        let drawn = bits(made.drawn_bits);
        f64::from(report.declared_bits).min(drawn) / drawn.max(1.0)
    });
    let expected_share = COUNTING_SHARE * shares.sum::<f64>() / f64::from(count(values));
    let chance = ln_chance_of_at_most(counting, report.flipped_bits, expected_share);
    (chance < IMPLAUSIBLE).then_some(EntropyFault::Unused {
        flipped_bits: report.flipped_bits,
        counting_bits: counting,
        drawn_bits: report.drawn_bits,
        declared_bits: report.declared_bits,
    })
}

/// Whether values are alike more often than chance has it.
fn repeated(report: &EntropyReport, values: &[Made]) -> Option<EntropyFault> {
    let mut alike: BTreeMap<&BTreeMap<String, String>, u32> = BTreeMap::new();
    for made in values {
        *alike.entry(&made.secrets).or_default() += 1;
    }
    let pairs: u32 = alike.values().map(|count| count * (count - 1) / 2).sum();
    let chance = ln_chance_of_repetitions(pairs, report.values, report.declared_bits);
    (chance < IMPLAUSIBLE).then_some(EntropyFault::Repeated {
        values: report.values,
        pairs,
        declared_bits: report.declared_bits,
    })
}

fn count(values: &[Made]) -> u32 {
    u32::try_from(values.len()).unwrap_or(u32::MAX)
}

fn bits(number: u64) -> f64 {
    u32::try_from(number).map_or(f64::from(u32::MAX), f64::from)
}

#[cfg(test)]
mod tests;
