//! Tests of each rule, with functions as generators. Guests that violate the rules are in `tests/guests/`.

use aws_lc_rs::digest;

use super::*;

const SEED: [u8; 32] = [3; 32];

/// A generator implemented by a function of the drawn bytes.
struct Function<F>(F);

impl<F: FnMut(&mut Draw) -> Vec<(&'static str, String)>> Subject for Function<F> {
    type Failure = ();

    fn processor_time(&self) -> Duration {
        Duration::ZERO
    }

    fn generate(&mut self, stream: Stream) -> Result<GeneratedValue, ()> {
        let mut draw = Draw { stream, drawn: 0 };
        let secrets: BTreeMap<_, _> = (self.0)(&mut draw)
            .into_iter()
            .map(|(path, text)| (path.to_owned(), text))
            .collect();
        Ok(GeneratedValue {
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
    examine(
        &mut Function(function),
        declared_bits,
        SEED,
        Effort::AT_START,
    )
    .unwrap()
}

/// Returns all violated rules.
fn faults(
    declared_bits: u32,
    function: impl FnMut(&mut Draw) -> Vec<(&'static str, String)>,
) -> Vec<EntropyError> {
    report(declared_bits, function).faults
}

/// Expands a seed to 128 pseudorandom bits.
fn stretched(seed: &[u8]) -> String {
    hex::encode(&digest::digest(&digest::SHA256, seed).as_ref()[..16])
}

/// Draws one of 62 characters by rejection sampling.
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
fn correct_generators_of_many_forms_pass() {
    assert_eq!(
        report(256, |draw| vec![("", hex::encode(draw.bytes::<32>()))]),
        EntropyReport {
            declared_bits: 256,
            drawn_bits: 256,
            values: VALUES_MAX,
            flipped_bits: FLIPS_MAX,
            faults: Vec::new(),
        }
    );
    let letters = |draw: &mut Draw| vec![("", (0..30).map(|_| letter(draw)).collect())];
    assert_eq!(faults(178, letters), []);
    let uuid = |draw: &mut Draw| {
        let mut bytes = draw.bytes::<16>();
        bytes[6] = bytes[6] & 0x0f | 0x40;
        bytes[8] = bytes[8] & 0x3f | 0x80;
        vec![("id", hex::encode(bytes))]
    };
    assert_eq!(faults(122, uuid), []);
    let multiplied = |draw: &mut Draw| {
        let digit = |draw: &mut Draw| (u64::from(u32::from_le_bytes(draw.bytes())) * 10) >> 32;
        vec![("", (0..8).map(|_| digit(draw).to_string()).collect())]
    };
    assert_eq!(faults(26, multiplied), []);
    let pin = |draw: &mut Draw| {
        let number = u64::from_le_bytes(draw.bytes()) % 10_000;
        vec![("", format!("{number:04}"))]
    };
    assert_eq!(faults(13, pin), []);
}

#[test]
fn a_hidden_input_violates_only_the_first_rule() {
    let mut calls = 0;
    let hidden = |draw: &mut Draw| {
        calls += 1;
        vec![("", format!("{}{calls}", hex::encode(draw.bytes::<16>())))]
    };
    assert_eq!(faults(128, hidden), [EntropyError::Unrepeatable]);
}

#[test]
fn one_constant_secret_part_violates_only_the_second_rule() {
    let pepper = |draw: &mut Draw| {
        vec![
            ("password", hex::encode(draw.bytes::<16>())),
            ("pepper", "d6".repeat(16)),
        ]
    };
    let expected = EntropyError::Constant {
        place: "pepper".to_owned(),
        values: VALUES_MAX,
    };
    assert_eq!(faults(128, pepper), [expected]);
}

#[test]
fn too_few_drawn_bytes_violate_only_the_third_rule() {
    let squared = |draw: &mut Draw| {
        let few = u64::from_le_bytes(draw.bytes());
        vec![("", hex::encode(u128::from(few).pow(2).to_le_bytes()))]
    };
    let expected = EntropyError::TooFewDrawn {
        drawn_bits: 64,
        declared_bits: 65,
    };
    assert_eq!(faults(65, squared), [expected]);
}

#[test]
fn unused_drawn_bytes_violate_only_the_fourth_rule() {
    let truncated = |draw: &mut Draw| vec![("", stretched(&draw.bytes::<32>()[..5]))];
    assert!(matches!(
        faults(128, truncated)[..],
        [EntropyError::Unused {
            flipped_bits: FLIPS_MAX,
            drawn_bits: 256,
            ..
        }]
    ));
    assert_eq!(faults(40, truncated), []);
}

#[test]
fn implausibly_repeated_values_violate_only_the_fifth_rule() {
    let folded = |draw: &mut Draw| {
        let all = draw.bytes::<16>();
        // All 128 bits affect the value, but its entropy is only 16 bits.
        let folded = |parity| (parity..16).step_by(2).fold(0, |sum, at| sum ^ all[at]);
        vec![("", stretched(&[folded(0), folded(1)]))]
    };
    assert!(matches!(
        faults(128, folded)[..],
        [EntropyError::Repeated { .. }]
    ));
    assert_eq!(faults(16, folded), []);
}

#[test]
fn fixed_and_biased_positions_violate_only_the_sixth_rule() {
    let fixed = |draw: &mut Draw| {
        let mut digits = hex::encode(draw.bytes::<16>());
        let folded = u8::from_str_radix(&digits[..1], 16).unwrap()
            ^ u8::from_str_radix(&digits[1..2], 16).unwrap();
        digits.replace_range(..2, &format!("0{folded:x}"));
        vec![("", digits)]
    };
    let expected = EntropyError::Biased {
        values: VALUES_MAX,
        held_bits: 124,
        declared_bits: 128,
        fixed_positions: 1,
    };
    assert_eq!(faults(128, fixed), [expected]);
    let biased = |draw: &mut Draw| {
        let both = u128::from_le_bytes(draw.bytes()) & u128::from_le_bytes(draw.bytes());
        vec![("", format!("{both:032x}"))]
    };
    assert!(matches!(
        faults(112, biased)[..],
        [EntropyError::Biased {
            fixed_positions: 0,
            ..
        }]
    ));
    assert_eq!(faults(103, biased), []);
}

#[test]
fn a_constant_generator_is_reported_by_the_first_violated_rule() {
    let constant = |draw: &mut Draw| {
        draw.bytes::<16>();
        vec![("", stretched(b"constant"))]
    };
    let report = report(128, constant);
    assert_eq!(report.faults.len(), 4);
    assert!(matches!(
        report.fault(),
        Some(EntropyError::Constant { .. })
    ));
}

/// A correct generator; the function returns the processor time of each call.
struct Computing<F>(F, u32, Duration);

impl<F: Fn(u32) -> Duration> Subject for Computing<F> {
    type Failure = ();

    fn generate(&mut self, stream: Stream) -> Result<GeneratedValue, ()> {
        self.2 += (self.0)(self.1);
        self.1 += 1;
        Function(|draw: &mut Draw| vec![("", hex::encode(draw.bytes::<16>()))]).generate(stream)
    }

    fn processor_time(&self) -> Duration {
        self.2
    }
}

/// Returns the numbers of values and flipped bits of a test at start-up, and its processor time.
fn tested_with(call: impl Fn(u32) -> Duration) -> (u32, u32, Duration) {
    let mut subject = Computing(call, 0, Duration::from_hours(1));
    let report = examine(&mut subject, 128, SEED, Effort::AT_START).unwrap();
    assert_eq!(report.faults, []);
    let computed = subject
        .processor_time()
        .saturating_sub(Duration::from_hours(1));
    (report.values, report.flipped_bits, computed)
}

#[test]
fn only_slow_generators_get_the_reduced_test() {
    let few = Effort::AT_START.few;
    for (call_us, values, flips) in [
        (0, VALUES_MAX, FLIPS_MAX),
        (1, VALUES_MAX, FLIPS_MAX),
        (3_000, VALUES_MAX, FLIPS_MAX),
        (3_400, few, few),
        (60_000_000, few, few),
    ] {
        let call = Duration::from_micros(call_us);
        let (seen, flipped, _) = tested_with(|_| call);
        assert_eq!((seen, flipped), (values, flips), "{call:?}");
    }
}

#[test]
fn a_few_slow_calls_do_not_reduce_the_test() {
    let sometimes_slow = |number| Duration::from_millis(if number % 5 == 0 { 9 } else { 1 });
    let (values, flips, _) = tested_with(sometimes_slow);
    assert_eq!((values, flips), (VALUES_MAX, FLIPS_MAX));
}

#[test]
fn a_generator_that_becomes_slow_is_tested_within_the_limit() {
    let few = Effort::AT_START.few;
    let slow = Duration::from_millis(100);
    let (values, flips, computed) = tested_with(|number| {
        let is_slow = number > 2 * few;
        if is_slow { slow } else { Duration::ZERO }
    });
    assert!((few + 1..VALUES_MAX).contains(&values), "{values}");
    assert_eq!(flips, few);
    assert_eq!(
        computed,
        Effort::AT_START.processor_time_max + slow * flips,
        "{values}"
    );
}

#[test]
fn the_values_of_a_test_have_a_maximum_size() {
    let padding = "a".repeat(1024 * 1024);
    let report = report(128, |draw| {
        vec![("", hex::encode(draw.bytes::<16>()) + &padding)]
    });
    assert_eq!(report.values, 128);
}

#[test]
fn a_generator_that_uses_no_bits_is_found_with_few_flips() {
    let seen = |effective_bits| {
        let observations = Observations {
            declared_bits: 128,
            is_repeatable: true,
            values: vec![value(128); 2],
            secret_bytes: 0,
            flipped_bits: Effort::AT_START.few,
            effective_bits,
        };
        observations.unused().is_some()
    };
    assert!(seen(0) && !seen(Effort::AT_START.few / 2));
}

fn value(drawn_bits: u64) -> GeneratedValue {
    GeneratedValue {
        text: String::new(),
        secrets: BTreeMap::new(),
        drawn_bits,
    }
}
