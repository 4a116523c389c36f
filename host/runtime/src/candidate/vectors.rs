//! What an author writes down of values: which parameters and random bytes give which.

use std::sync::{
    Mutex, PoisonError,
    atomic::{AtomicBool, Ordering},
};

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::host::random::{RandomSource, RandomUnavailable};

/// One expectation of a plugin: which value is made, or which parameter is refused.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "Written")]
pub struct Vector {
    /// What a caller asks for.
    pub(super) parameters: Map<String, Value>,
    /// The random bytes that the host gives. More than these can't be drawn.
    pub(super) random: Vec<u8>,
    /// The time of the call, in seconds since 1970.
    pub(super) now_seconds: u64,
    /// What comes of it.
    pub(super) expected: Expected,
}

/// What comes of parameters.
#[derive(Clone, Debug)]
pub(super) enum Expected {
    /// This value.
    Value(Value),
    /// A refusal that names this parameter; the empty name stands for none in particular.
    Refused(String),
}

/// An expectation as it is written.
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
                _ => return Err("either value or refused must be there"),
            },
        })
    }
}

/// The bytes that these hexadecimal digits are.
fn bytes(digits: &str) -> Option<Vec<u8>> {
    let pairs = digits.as_bytes().chunks(2);
    let bytes = pairs.map(|pair| {
        let pair = std::str::from_utf8(pair).ok()?;
        (pair.len() == 2).then(|| u8::from_str_radix(pair, 16).ok())?
    });
    bytes.collect()
}

impl Vector {
    /// The expectations in a text: a JSON array.
    ///
    /// # Errors
    /// When it is none.
    pub fn parse_all(text: &str) -> Result<Vec<Self>, VectorsMalformed> {
        let vectors: Value = keywright_json::read(text).map_err(serde_json::Error::from)?;
        Ok(serde_json::from_value(vectors)?)
    }
}

/// A text does not hold expectations of a plugin.
#[derive(Debug, thiserror::Error)]
#[error(
    "it is not a JSON array of objects with parameters, random, now_seconds, and either value or refused"
)]
pub struct VectorsMalformed(#[from] serde_json::Error);

/// A source that gives these bytes and no more.
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
    fn an_expectation_has_a_value_or_a_refusal() {
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
    fn no_more_bytes_are_given_than_there_are() {
        let source = GivenBytes::new(vec![1, 2, 3]);
        let mut bytes = [0; 2];
        source.fill(&mut bytes).unwrap();
        assert_eq!(bytes, [1, 2]);
        assert!(!source.has_run_out());
        assert!(source.fill(&mut bytes).is_err() && source.has_run_out());
    }
}
