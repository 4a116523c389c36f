//! Test vectors: the expected value for given parameters and random bytes.

use std::sync::{
    Mutex, PoisonError,
    atomic::{AtomicBool, Ordering},
};

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::host::random::{RandomSource, RandomUnavailable};

/// A test vector: the expected value, or the parameter that must be refused.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "Written")]
pub struct Vector {
    /// The parameters of the request.
    pub(super) parameters: Map<String, Value>,
    /// All random bytes that the guest can draw.
    pub(super) random: Vec<u8>,
    /// The time of the call, in seconds since 1970.
    pub(super) now_seconds: u64,
    /// The expected result.
    pub(super) expected: Expected,
}

/// An expected result.
#[derive(Clone, Debug)]
pub(super) enum Expected {
    /// This value.
    Value(Value),
    /// A refusal that names this parameter; the empty string if it names none.
    Refused(String),
}

/// The JSON form of a [`Vector`].
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    #[serde(default)]
    parameters: Map<String, Value>,
    /// Hexadecimal.
    #[serde(default)]
    random: String,
    #[serde(default)]
    now_seconds: u64,
    value: Option<Value>,
    refused: Option<String>,
}

impl TryFrom<Written> for Vector {
    type Error = &'static str;

    fn try_from(written: Written) -> Result<Self, Self::Error> {
        Ok(Self {
            parameters: written.parameters,
            random: bytes(&written.random).ok_or("random is not hexadecimal")?,
            now_seconds: written.now_seconds,
            expected: match (written.value, written.refused) {
                (Some(value), None) => Expected::Value(value),
                (None, Some(member)) => Expected::Refused(member),
                _ => return Err("exactly one of value and refused is required"),
            },
        })
    }
}

/// Decodes hexadecimal digits.
fn bytes(digits: &str) -> Option<Vec<u8>> {
    let pairs = digits.as_bytes().chunks(2);
    let bytes = pairs.map(|pair| {
        let pair = std::str::from_utf8(pair).ok()?;
        (pair.len() == 2).then(|| u8::from_str_radix(pair, 16).ok())?
    });
    bytes.collect()
}

impl Vector {
    /// Parses a JSON array of vectors.
    ///
    /// # Errors
    /// If the text is malformed.
    pub fn parse_all(text: &str) -> Result<Vec<Self>, VectorsMalformed> {
        let vectors: Value = keywright_json::read(text).map_err(serde_json::Error::from)?;
        Ok(serde_json::from_value(vectors)?)
    }
}

/// The error for malformed test vectors.
#[derive(Debug, thiserror::Error)]
#[error(
    "it is not a JSON array of objects with parameters, random, now_seconds, and either value or refused"
)]
pub struct VectorsMalformed(#[from] serde_json::Error);

/// A random source with a fixed number of bytes.
pub(super) struct GivenBytes {
    left: Mutex<std::vec::IntoIter<u8>>,
    has_run_out: AtomicBool,
}

impl GivenBytes {
    pub(super) fn new(bytes: Vec<u8>) -> Self {
        Self {
            left: Mutex::new(bytes.into_iter()),
            has_run_out: AtomicBool::new(false),
        }
    }

    pub(super) fn has_run_out(&self) -> bool {
        self.has_run_out.load(Ordering::Relaxed)
    }
}

impl RandomSource for GivenBytes {
    fn fill(&self, bytes: &mut [u8]) -> Result<(), RandomUnavailable> {
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        for byte in bytes {
            let Some(given) = left.next() else {
                self.has_run_out.store(true, Ordering::Relaxed);
                return Err(RandomUnavailable);
            };
            *byte = given;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vector_has_either_a_value_or_a_refusal() {
        for text in [
            r#"[{"parameters": {}, "random": "00ff", "now_seconds": 1, "value": {"a": 1}}]"#,
            r#"[{"value": 1}, {"refused": "length"}, {"refused": ""}]"#,
        ] {
            assert!(Vector::parse_all(text).is_ok(), "{text}");
        }
        for text in [
            "{}",
            "[{}]",
            r#"[{"value": 1, "refused": "a"}]"#,
            r#"[{"value": 1, "random": "0"}]"#,
            r#"[{"value": 1, "random": "zz"}]"#,
            r#"[{"value": 1, "parameter": {}}]"#,
        ] {
            assert!(Vector::parse_all(text).is_err(), "{text}");
        }
    }

    #[test]
    fn the_source_fails_when_its_bytes_run_out() {
        let source = GivenBytes::new(vec![1, 2, 3]);
        let mut bytes = [0; 2];
        source.fill(&mut bytes).unwrap();
        assert_eq!(bytes, [1, 2]);
        assert!(!source.has_run_out());
        assert!(source.fill(&mut bytes).is_err() && source.has_run_out());
    }
}
