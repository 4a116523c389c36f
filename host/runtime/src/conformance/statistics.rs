//! The statistics of the entropy test. All results are upper bounds:
//!
//! - the probability of the observations if the generator is correct, as a natural logarithm
//! - the random bits in the values, from the frequencies of characters at each position

use std::{
    collections::{BTreeMap, BTreeSet},
    str::Chars,
};

/// Observations with a probability below 10⁻⁹ are implausible. This is the natural logarithm of that threshold.
pub(super) const IMPLAUSIBLE: f64 = -20.723;
/// The minimum number of values for estimates from frequencies.
const VALUES_FOR_FREQUENCIES: u32 = 1_000;
/// The minimum mean frequency of characters for estimates from frequencies.
const MEAN_FREQUENCY_MIN: u32 = 16;
/// The tolerance of an estimate in standard deviations: it is exceeded with a probability of 10⁻⁹.
const STANDARD_DEVIATIONS: f64 = 6.0;
/// The maximum entropy of an ASCII character, and of any other character, in bits.
const ASCII_BITS: f64 = 7.0;
const CHARACTER_BITS: f64 = 21.0;

/// Returns an upper bound, as a natural logarithm, of the probability that at most `found` of `tested` bits affect the value, if
/// the fraction `share` of all bits affects it.
///
/// Uses the bound of Chernoff and Hoeffding (W. Hoeffding, "Probability inequalities for sums of bounded random variables", 1963,
/// theorem 1): `exp(-n·D(found/n ‖ share))`, where `n` is `tested`.
///
/// A lower bound of `share` follows from the edge-isoperimetric inequality of the hypercube (L. Harper, 1964). Take a value with
/// probability `p`: in the streams that yield it, on average at least `log2(1/p)` single-bit flips change the value. Averaged
/// over all streams, the number of such bits is therefore at least the entropy of the values.
pub(super) fn ln_chance_of_at_most(found: u32, tested: u32, share: f64) -> f64 {
    let found_share = f64::from(found) / f64::from(tested.max(1));
    if found_share >= share {
        return 0.0;
    }
    let counting = if found == 0 {
        0.0
    } else {
        found_share * (found_share / share).ln()
    };
    let idle = (1.0 - found_share) * ((1.0 - found_share) / (1.0 - share)).ln();
    -f64::from(tested) * (counting + idle)
}

/// Returns an upper bound, as a natural logarithm, of the probability of at least `pairs` equal pairs among `values` values with
/// this entropy.
///
/// Among `n` values, each of the `n(n-1)/2` pairs is equal with a probability of at most `2^-bits` (birthday bound). The number
/// of equal pairs is treated as a Poisson variable with mean `λ`. Chernoff's bound for at least `d` pairs is `exp(-λ)·(eλ/d)^d`.
/// With 2,000 values, a single equal pair is implausible for 53 or more declared bits.
pub(super) fn ln_chance_of_repetitions(pairs: u32, values: u32, entropy_bits: u32) -> f64 {
    let values = f64::from(values);
    let ln_expected = (values * (values - 1.0) / 2.0).max(1.0).ln()
        - f64::from(entropy_bits) * std::f64::consts::LN_2;
    let expected = ln_expected.exp();
    let pairs = f64::from(pairs);
    if pairs <= expected {
        return 0.0;
    }
    pairs * (1.0 + ln_expected - pairs.ln()) - expected
}

/// An upper bound of the random bits in values.
pub(super) struct BitsBound {
    pub(super) bits: u32,
    /// The number of positions with the same character in every value.
    pub(super) fixed_positions: u32,
}

/// Returns an upper bound of the random bits in values, or `None` if the bound is at least `declared_bits`. Each value is given
/// as its secret parts by path.
///
/// The entropy of a text is at most the sum of the entropies of its characters (subadditivity; T. Cover and J. Thomas, "Elements
/// of Information Theory", theorem 2.6.6). This also holds for values with fixed or dependent positions, so only impossible
/// claims are refused.
///
/// The entropy of a position is estimated from the frequencies of its characters, with the Miller-Madow correction for unseen
/// characters (G. Miller, "Note on the bias of information estimates", 1955), plus six standard deviations. With fewer than 1,000
/// values, or too many distinct characters for an estimate, the position counts with the maximum entropy of a character. A
/// position with the same character in every value counts with 0 bits.
pub(super) fn bits_below(
    declared_bits: u32,
    values: &[&BTreeMap<String, String>],
) -> Option<BitsBound> {
    let count = u32::try_from(values.len()).unwrap_or(u32::MAX);
    let paths: BTreeSet<&String> = values.iter().flat_map(|secrets| secrets.keys()).collect();
    let (mut held_bits, mut fixed_positions) = (0.0, 0);
    for path in paths {
        let texts = values.iter().map(|secrets| secrets.get(path));
        let mut readers: Vec<Chars<'_>> = texts
            .map(|text| text.map_or("", String::as_str).chars())
            .collect();
        while let Some(frequencies) = next_frequencies(&mut readers) {
            if frequencies.len() == 1 {
                fixed_positions += 1;
            } else {
                held_bits += bits_at_most(&frequencies, count);
            }
            if held_bits >= f64::from(declared_bits) {
                return None;
            }
        }
    }
    Some(BitsBound {
        bits: whole(held_bits, declared_bits),
        fixed_positions,
    })
}

/// Returns the frequencies of characters at the next position, counting the end of a text as a character; `None` at the end of
/// all texts.
fn next_frequencies(readers: &mut [Chars<'_>]) -> Option<BTreeMap<Option<char>, u32>> {
    let mut frequencies = BTreeMap::new();
    for reader in readers {
        *frequencies.entry(reader.next()).or_insert(0) += 1;
    }
    let have_ended = frequencies.len() == 1 && frequencies.contains_key(&None);
    (!have_ended).then_some(frequencies)
}

/// Returns an upper bound of the entropy of a position with these frequencies, in bits.
fn bits_at_most(frequencies: &BTreeMap<Option<char>, u32>, values: u32) -> f64 {
    let kinds = u32::try_from(frequencies.len()).unwrap_or(u32::MAX);
    if values < VALUES_FOR_FREQUENCIES || kinds > values / MEAN_FREQUENCY_MIN {
        let is_ascii = frequencies.keys().flatten().all(char::is_ascii);
        return if is_ascii { ASCII_BITS } else { CHARACTER_BITS };
    }
    let values = f64::from(values);
    let (mut entropy, mut square) = (0.0, 0.0);
    for frequency in frequencies.values() {
        let share = f64::from(*frequency) / values;
        entropy -= share * share.log2();
        square += share * share.log2() * share.log2();
    }
    let unseen = f64::from(kinds - 1) / (2.0 * values * std::f64::consts::LN_2);
    let variance = (square - entropy * entropy).max(0.0) / values
        + f64::from(kinds - 1) / (2.0 * (values * std::f64::consts::LN_2).powi(2));
    entropy + unseen + STANDARD_DEVIATIONS * variance.sqrt()
}

/// Rounds `bits`, which must be less than `bound`, down to an integer.
fn whole(bits: f64, bound: u32) -> u32 {
    let fits = |candidate: &u32| f64::from(*candidate) <= bits;
    (0..bound).take_while(fits).last().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn likely_observations_are_plausible() {
        assert!(ln_chance_of_at_most(64, 128, 0.5) >= IMPLAUSIBLE);
        assert!(ln_chance_of_at_most(50, 128, 0.5) >= IMPLAUSIBLE);
        assert!(ln_chance_of_at_most(0, 8, 0.5) >= IMPLAUSIBLE);
        assert!(ln_chance_of_repetitions(0, 2_000, 128) >= IMPLAUSIBLE);
        assert!(ln_chance_of_repetitions(200, 2_000, 13) >= IMPLAUSIBLE);
    }

    #[test]
    fn unlikely_observations_are_implausible() {
        assert!(ln_chance_of_at_most(20, 128, 0.5) < IMPLAUSIBLE);
        assert!(ln_chance_of_at_most(0, 1_024, 0.03) < IMPLAUSIBLE);
        assert!(ln_chance_of_repetitions(1, 2_000, 52) >= IMPLAUSIBLE);
        assert!(ln_chance_of_repetitions(1, 2_000, 53) < IMPLAUSIBLE);
        assert!(ln_chance_of_repetitions(1, 2_000, 4_096) < IMPLAUSIBLE);
        assert!(ln_chance_of_repetitions(1_000, 2_000, 13) < IMPLAUSIBLE);
    }
}
