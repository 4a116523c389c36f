//! An upper bound of the random bits in values, from the frequencies of characters at each position.

use std::{collections::BTreeMap, str::Chars};

use super::{EntropyFault, Made, count};

/// The minimum number of values for estimates from frequencies.
const VALUES_FOR_FREQUENCIES: u32 = 1_000;
/// The minimum mean frequency of characters for estimates from frequencies.
const MEAN_FREQUENCY_MIN: u32 = 16;
/// The tolerance of an estimate in standard deviations: it is exceeded with a probability of 10⁻⁹.
const STANDARD_DEVIATIONS: f64 = 6.0;
/// The maximum entropy of an ASCII character, and of any other character, in bits.
const ASCII_BITS: f64 = 7.0;
const CHARACTER_BITS: f64 = 21.0;

/// Checks that values can contain the declared bits.
///
/// The entropy of a text is at most the sum of the entropies of its characters (subadditivity; T. Cover and J. Thomas,
/// "Elements of Information Theory", theorem 2.6.6). This also holds for values with fixed or dependent positions, so only
/// impossible claims are refused. The entropy of a position is estimated from the frequencies of its characters, with the
/// Miller-Madow correction for unseen characters (G. Miller, "Note on the bias of information estimates", 1955), plus six
/// standard deviations. With fewer than 1,000 values or very many characters, a position that varies counts as the maximum
/// entropy of a character.
pub(super) fn biased(declared_bits: u32, values: &[Made]) -> Option<EntropyFault> {
    let mut places: Vec<&String> = values.iter().flat_map(|made| made.secrets.keys()).collect();
    places.sort();
    places.dedup();
    let (mut held_bits, mut fixed_places) = (0.0, 0);
    for place in places {
        let texts = values.iter().map(|made| made.secrets.get(place));
        let mut readers: Vec<Chars<'_>> = texts
            .map(|text| text.map_or("", String::as_str).chars())
            .collect();
        while let Some(frequencies) = next_frequencies(&mut readers) {
            if frequencies.len() == 1 {
                fixed_places += 1;
            } else {
                held_bits += bits_at_most(&frequencies, count(values));
            }
            if held_bits >= f64::from(declared_bits) {
                return None;
            }
        }
    }
    Some(EntropyFault::Biased {
        values: count(values),
        held_bits: whole(held_bits, declared_bits),
        declared_bits,
        fixed_places,
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
