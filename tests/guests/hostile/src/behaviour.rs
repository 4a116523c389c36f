//! Misbehavior that is independent of the called function.

use std::{
    hint::black_box,
    sync::atomic::{AtomicU32, Ordering},
};

use serde_json::Value;

use crate::bindings::{
    keywright::generator::{
        notes::note,
        types::{Failure, Violation},
    },
    wasi::random::random::{get_random_bytes, get_random_u64},
};

/// Returns the behavior that the settings select for a function, if any.
pub(crate) fn named(settings: &str, function: &str) -> Option<String> {
    let settings: Value = serde_json::from_str(settings).ok()?;
    Some(settings.get(function)?.as_str()?.to_owned())
}

/// Returns the text in the field `note` as the result. Without that field, returns the input.
pub(crate) fn echo(given: &str) -> String {
    let json: Value = serde_json::from_str(given).unwrap_or_default();
    let note = json.get("note").and_then(Value::as_str);
    note.unwrap_or(given).to_owned()
}

/// Misbehaves in the selected way.
#[expect(clippy::panic, reason = "panicking is one of the behaviors")]
pub(crate) fn behave(behaviour: &str) -> Result<String, Failure> {
    match behaviour {
        "loop" => loop {
            black_box(());
        },
        "allocate" => {
            let mut kept = Vec::new();
            loop {
                kept.push(black_box(vec![1_u8; 1024 * 1024]));
            }
        }
        "recurse" => Ok(descend(1).to_string()),
        "trap" => core::arch::wasm32::unreachable(),
        "panic" => panic!("hunter2"),
        "large-output" => Ok("a".repeat(8 * 1024 * 1024)),
        "claimed-output" => Ok(claimed_text()),
        "not-utf-8" => Ok(text_of(vec![0xff; 8])),
        "not-json" => Ok("{\"secret\":hunter2".to_owned()),
        "wrong-shape" => Ok(r#"{"secret":7}"#.to_owned()),
        "unknown-member" => Ok(r#"{"secret":"s","hunter2":1}"#.to_owned()),
        "member-twice" => Ok(r#"{ "secret": "first", "secret": "second" }"#.to_owned()),
        "misconfigured" => Err(Failure::Misconfigured(
            "no\nsuch\u{1b}\u{202e}thing".to_owned(),
        )),
        "other" => Err(Failure::Other("x".repeat(4096))),
        "refuse-parameters" => Err(Failure::InvalidParameters(wordy())),
        "refuse-value" => Err(Failure::InvalidValue(wordy())),
        "much-random" => Ok(get_random_bytes(1024 * 1024 + 1).len().to_string()),
        "most-random" => {
            let length = get_random_bytes(1024 * 1024).len();
            Ok(format!(
                r#"{{"secret":"{:016x}","note":"{length}"}}"#,
                get_random_u64()
            ))
        }
        "count-calls" => {
            let calls = CALLS.fetch_add(1, Ordering::Relaxed) + 1;
            Ok(format!(r#"{{"secret":"s","note":"{calls}"}}"#))
        }
        "note" => {
            note_too_much();
            Ok(r#"{"secret":"s"}"#.to_owned())
        }
        "note-and-trap" => {
            note("hunter2");
            core::arch::wasm32::unreachable()
        }
        other => Err(Failure::Misconfigured(format!("unknown behavior {other}"))),
    }
}

/// Sends 34 notes, two more than the limit. The first is one byte too long, and the second contains a terminal escape sequence.
fn note_too_much() {
    note(&format!("x{}", "é".repeat(512)));
    note("hunter2\n\u{1b}[31m");
    for number in 3..=34 {
        note(&format!("note {number}"));
    }
}

static CALLS: AtomicU32 = AtomicU32::new(0);

/// Returns the linear memory in hexadecimal, except its first byte, which has no address in Rust.
#[expect(unsafe_code, reason = "reads memory that it does not own")]
pub(crate) fn dump() -> String {
    const PAGE_BYTES: usize = 65_536;
    let length = core::arch::wasm32::memory_size(0) * PAGE_BYTES;
    let mut digits = String::with_capacity(length * 2);
    for address in 1..length {
        // SAFETY: the address is within the memory, which never shrinks.
        let byte = unsafe { core::ptr::with_exposed_provenance::<u8>(address).read_volatile() };
        for nibble in [byte >> 4, byte & 15] {
            digits.push(char::from_digit(u32::from(nibble), 16).unwrap_or_default());
        }
    }
    digits
}

/// Counts the occurrences of each byte string in the parameter `masked` in the linear memory.
///
/// The strings are hexadecimal with every bit inverted, so that the request itself adds no occurrence.
#[expect(unsafe_code, reason = "reads memory that it does not own")]
pub(crate) fn search(parameters: &Value) -> String {
    const PAGE_BYTES: usize = 65_536;
    let masked: Vec<Vec<u8>> = texts(parameters, "masked").map(from_hexadecimal).collect();
    let mut counts = vec![0_u32; masked.len()];
    let length = core::arch::wasm32::memory_size(0) * PAGE_BYTES;
    for address in 1..length {
        for (needle, count) in masked.iter().zip(&mut counts) {
            let is_there = address + needle.len() <= length
                && needle.iter().enumerate().all(|(offset, masked)| {
                    let byte = core::ptr::with_exposed_provenance::<u8>(address + offset);
                    // SAFETY: the address is within the memory, which never shrinks.
                    !unsafe { byte.read_volatile() } == *masked
                });
            *count += u32::from(is_there);
        }
    }
    let counts: Vec<String> = counts.iter().map(u32::to_string).collect();
    counts.join(" ")
}

/// Decodes the hexadecimal parameter `tbs_certificate`.
pub(crate) fn tbs_certificate(parameters: &Value) -> Vec<u8> {
    let text = parameters.get("tbs_certificate").and_then(Value::as_str);
    from_hexadecimal(text.unwrap_or_default())
}

fn texts<'a>(parameters: &'a Value, name: &str) -> impl Iterator<Item = &'a str> {
    let items = parameters.get(name).and_then(Value::as_array);
    items.into_iter().flatten().filter_map(Value::as_str)
}

/// Encodes bytes in hexadecimal.
pub(crate) fn hexadecimal(bytes: &[u8]) -> String {
    let nibbles = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    nibbles
        .filter_map(|nibble| char::from_digit(u32::from(nibble), 16))
        .collect()
}

fn from_hexadecimal(digits: &str) -> Vec<u8> {
    let pairs = digits.as_bytes().chunks(2);
    let pairs = pairs.filter_map(|pair| core::str::from_utf8(pair).ok());
    pairs
        .filter_map(|pair| u8::from_str_radix(pair, 16).ok())
        .collect()
}

/// Recurses endlessly, without a frame in the linear memory.
#[expect(unconditional_recursion, reason = "exhausts the stack on purpose")]
#[inline(never)]
fn descend(depth: u64) -> u64 {
    descend(depth.wrapping_mul(3)) ^ descend(depth.wrapping_add(5)).rotate_left(7)
}

/// Returns a string that claims to have a gibibyte.
#[expect(unsafe_code, reason = "the length is wrong on purpose")]
fn claimed_text() -> String {
    const CLAIMED_BYTES: usize = 1024 * 1024 * 1024;
    // `black_box` hides the true size of the allocation from the optimizer.
    let bytes = black_box(Box::leak(Box::new([b'a'; 8])).as_mut_ptr());
    // If the capacity exceeded the length, the string would be shrunk, which traps before it is returned.
    let capacity = black_box(CLAIMED_BYTES);
    // SAFETY: unsound on purpose; nothing in this guest reads the text, and no guest outlives its call.
    unsafe { String::from_raw_parts(bytes, CLAIMED_BYTES, capacity) }
}

#[expect(unsafe_code, reason = "not UTF-8 on purpose")]
fn text_of(bytes: Vec<u8>) -> String {
    // SAFETY: unsound on purpose; nothing in this guest reads the text.
    unsafe { String::from_utf8_unchecked(bytes) }
}

fn wordy() -> Violation {
    Violation {
        member: Some("le\n\u{202e}ngth".to_owned()),
        rule: format!("no\r\n\u{200b}{}", "x".repeat(4096)),
    }
}
