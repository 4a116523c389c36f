//! Each rule, by generators that are functions. Guests that break them are in `tests/guests/`.

use super::*;
use crate::component_file::hexadecimal;

const SEED: [u8; 32] = [3; 32];

/// A generator of these many declared bits, made of a function from what is drawn.
struct Function<F>(F);

impl<F: FnMut(&mut Draw) -> Vec<(&'static str, String)>> Subject for Function<F> {
    type Failure = ();

    fn make(&mut self, stream: Stream) -> Result<Made, ()> {
        let mut draw = Draw { stream, drawn: 0 };
        let secrets: BTreeMap<_, _> = (self.0)(&mut draw)
            .into_iter()
            .map(|(place, text)| (place.to_owned(), text))
            .collect();
        Ok(Made {
            text: format!("{secrets:?}"),
            secrets,
            drawn_bits: draw.drawn * 8,
        })
    }
}

struct Draw {
    stream: Stream,
    drawn: u64,
}

impl Draw {
    fn bytes<const N: usize>(&mut self) -> [u8; N] {
        let mut bytes = [0; N];
        self.stream.fill(self.drawn, &mut bytes);
        self.drawn += N as u64;
        bytes
    }
}

fn report(
    declared_bits: u32,
    function: impl FnMut(&mut Draw) -> Vec<(&'static str, String)>,
) -> EntropyReport {
    let effort = Effort(Duration::from_hours(1));
    examine(&mut Function(function), declared_bits, SEED, effort).unwrap()
}

fn fault(
    declared_bits: u32,
    function: impl FnMut(&mut Draw) -> Vec<(&'static str, String)>,
) -> Option<EntropyFault> {
    report(declared_bits, function).fault
}

/// A character of 62, by rejection.
fn letter(draw: &mut Draw) -> char {
    let letters = ('a'..='z').chain('A'..='Z').chain('0'..='9');
    let letters: Vec<char> = letters.collect();
    loop {
        let [byte] = draw.bytes();
        if let Some(letter) = letters.get(usize::from(byte >> 2)) {
            return *letter;
        }
    }
}

#[test]
fn honest_generators_of_many_forms_conform() {
    assert_eq!(
        report(256, |draw| vec![("", hexadecimal(&draw.bytes::<32>()))]),
        EntropyReport {
            declared_bits: 256,
            drawn_bits: 256,
            values: VALUES_MAX,
            flipped_bits: FLIPS_MAX,
            fault: None,
        }
    );
    let letters = |draw: &mut Draw| vec![("", (0..30).map(|_| letter(draw)).collect())];
    assert_eq!(fault(178, letters), None);
    let uuid = |draw: &mut Draw| {
        let mut bytes = draw.bytes::<16>();
        bytes[6] = bytes[6] & 0x0f | 0x40;
        bytes[8] = bytes[8] & 0x3f | 0x80;
        vec![("id", hexadecimal(&bytes))]
    };
    assert_eq!(fault(122, uuid), None);
    let multiplied = |draw: &mut Draw| {
        let digit = |draw: &mut Draw| (u64::from(u32::from_le_bytes(draw.bytes())) * 10) >> 32;
        vec![("", (0..8).map(|_| digit(draw).to_string()).collect())]
    };
    assert_eq!(fault(26, multiplied), None);
    let pin = |draw: &mut Draw| {
        let number = u64::from_le_bytes(draw.bytes()) % 10_000;
        vec![("", format!("{number:04}"))]
    };
    assert_eq!(fault(13, pin), None);
}

#[test]
fn something_hidden_that_goes_into_values_is_found() {
    let mut calls = 0;
    let hidden = |draw: &mut Draw| {
        calls += 1;
        vec![("", format!("{}{calls}", hexadecimal(&draw.bytes::<16>())))]
    };
    assert_eq!(fault(128, hidden), Some(EntropyFault::Unrepeatable));
}

#[test]
fn a_secret_part_that_is_always_the_same_is_found_beside_one_that_is_not() {
    let pepper = |draw: &mut Draw| {
        vec![
            ("password", hexadecimal(&draw.bytes::<16>())),
            ("pepper", "d6".repeat(16)),
        ]
    };
    let expected = EntropyFault::Constant {
        place: "pepper".to_owned(),
        values: VALUES_MAX,
    };
    assert_eq!(fault(128, pepper), Some(expected));
}

#[test]
fn too_few_bytes_are_found_however_they_are_stretched() {
    let stretched = |draw: &mut Draw| {
        let few = u64::from_le_bytes(draw.bytes());
        vec![("", hexadecimal(&u128::from(few).pow(2).to_le_bytes()))]
    };
    let expected = EntropyFault::TooFewDrawn {
        drawn_bits: 64,
        declared_bits: 65,
    };
    assert_eq!(fault(65, stretched), Some(expected));
}

#[test]
fn bytes_that_are_drawn_and_thrown_away_are_found() {
    let truncated = |draw: &mut Draw| vec![("", hexadecimal(&draw.bytes::<32>()[..8]))];
    assert!(matches!(
        fault(128, truncated),
        Some(EntropyFault::Unused {
            flipped_bits: FLIPS_MAX,
            drawn_bits: 256,
            ..
        })
    ));
    assert_eq!(fault(64, truncated), None);
}

#[test]
fn values_that_come_again_are_found_where_chance_does_not_explain_them() {
    let number = |draw: &mut Draw| {
        let number = u32::from_le_bytes(draw.bytes());
        // All 32 bits count, and 16 are left of them.
        vec![("", (number.wrapping_mul(0x9e37_79b1) >> 16).to_string())]
    };
    assert!(matches!(
        fault(32, number),
        Some(EntropyFault::Repeated { .. })
    ));
    assert_eq!(fault(16, number), None);
}

#[test]
fn fixed_places_and_biased_ones_are_found() {
    let fixed = |draw: &mut Draw| {
        let mut digits = hexadecimal(&draw.bytes::<16>());
        let folded = u8::from_str_radix(&digits[..1], 16).unwrap()
            ^ u8::from_str_radix(&digits[1..2], 16).unwrap();
        digits.replace_range(..2, &format!("0{folded:x}"));
        vec![("", digits)]
    };
    assert_eq!(
        fault(128, fixed),
        Some(EntropyFault::Biased {
            values: VALUES_MAX,
            held_bits: 124,
            declared_bits: 128,
            fixed_places: 1,
        })
    );
    let biased = |draw: &mut Draw| {
        let both = u128::from_le_bytes(draw.bytes()) & u128::from_le_bytes(draw.bytes());
        vec![("", format!("{both:032x}"))]
    };
    assert!(matches!(
        fault(112, biased),
        Some(EntropyFault::Biased {
            fixed_places: 0,
            ..
        })
    ));
    assert_eq!(fault(103, biased), None);
}

#[test]
fn a_slow_generator_is_looked_at_less_and_the_report_says_so() {
    let effort = Effort::AT_START;
    for (call_ms, values) in [(1, 500), (70, 8), (60_000, 8)] {
        let call = Duration::from_millis(call_ms);
        assert_eq!(effort.calls(call, VALUES_MIN, VALUES_MAX), values);
    }
    assert_eq!(
        effort.calls(Duration::ZERO, VALUES_MIN, VALUES_MAX),
        VALUES_MAX
    );
}
