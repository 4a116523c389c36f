//! How many random bits values can hold, by how often each character stands at each place in them.

use std::{collections::BTreeMap, str::Chars};

use super::{EntropyFault, Made, count};

/// From how many values on frequencies say something.
const VALUES_FOR_FREQUENCIES: u32 = 1_000;
/// A character must come so often, on average, for frequencies to say something.
const MEAN_FREQUENCY_MIN: u32 = 16;
/// By how many standard deviations an estimate may be off: it is by more with a probability of 10⁻⁹.
const STANDARD_DEVIATIONS: f64 = 6.0;
/// The most that a character of ASCII, and any other, can hold, in bits.
const ASCII_BITS: f64 = 7.0;
const CHARACTER_BITS: f64 = 21.0;

/// Whether values hold fewer bits than are declared.
///
/// The entropy of a text is at most the sum of those of its characters (subadditivity; T. Cover and J. Thomas, "Elements of
/// Information Theory", theorem 2.6.6), also where values have a form with fixed places, or places that follow from
/// others: so only what can't be is refused. The entropy at a place is estimated from the frequencies there, with the
/// correction of Miller and Madow for what is not seen (G. Miller, "Note on the bias of information estimates", 1955), and
/// six standard deviations are added. Where frequencies say too little, because there are fewer than 1,000 values or
/// very many characters, a place that varies counts for all that a character can hold.
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

/// How often each character stands at the next place, the end of a text being one too; nothing when all have ended.
fn next_frequencies(readers: &mut [Chars<'_>]) -> Option<BTreeMap<Option<char>, u32>> {
    let mut frequencies = BTreeMap::new();
    for reader in readers {
        *frequencies.entry(reader.next()).or_insert(0) += 1;
    }
    let have_ended = frequencies.len() == 1 && frequencies.contains_key(&None);
    (!have_ended).then_some(frequencies)
}

/// The most bits that a place with these frequencies can hold.
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

/// The whole bits in this many, which are fewer than `bound`.
fn whole(bits: f64, bound: u32) -> u32 {
    let fits = |candidate: &u32| f64::from(*candidate) <= bits;
    (0..bound).take_while(fits).last().unwrap_or_default()
}
