//! Testing a generator against its contract, and test vectors: the expected value for given parameters and random bytes.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use keywright_core::{
    credential::Parameters,
    ports::{PluginCallError, Violation},
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{PluginTestError, PluginUnderTest, issuerless, on_calling_thread};
use crate::{
    conformance::{Effort, EntropyReport, RepeatableRandom},
    generator::{GeneratorGuest, describe, entropy_report},
    host::{RandomError, RandomSource, SystemRandom},
    measure::Usage,
    refused::Refusal,
};

/// The number of values generated to check them against their schema.
const VALUES: u32 = 20;
/// The name of a parameter that no plugin has.
const UNKNOWN_PARAMETER: &str = "keywright-unknown-parameter";

/// The results of testing a generator.
#[derive(Debug, Serialize)]
pub struct ConformanceReport {
    /// The checks, in order of execution.
    pub checks: Vec<Check>,
    /// The peak usage of each limit by any call of these checks.
    pub limits: Vec<LimitUsed>,
    /// The report of the entropy test; `None` if values are derived, or no value could be generated.
    pub entropy: Option<EntropyReport>,
}

impl ConformanceReport {
    /// Returns whether all checks passed.
    #[must_use]
    pub fn is_passed(&self) -> bool {
        self.checks.iter().all(|check| check.fault.is_none())
    }
}

/// One check.
#[derive(Debug, Serialize)]
pub struct Check {
    /// The expected behaviour.
    pub claim: String,
    /// The deviation, if the check failed.
    pub fault: Option<String>,
}

/// The usage of a limit.
#[derive(Debug, Serialize)]
pub struct LimitUsed {
    /// The setting of the limit.
    pub limit: &'static str,
    /// The peak usage of a call.
    pub used: u64,
    /// The limit's value.
    pub max: u64,
}

impl PluginUnderTest {
    /// Tests the generator with the first of the examples in its parameters schema, and with these vectors.
    ///
    /// # Errors
    /// If a server would refuse it for a reason other than its randomness.
    pub fn test(
        &self,
        vectors: &[Vector],
        now_seconds: u64,
    ) -> Result<ConformanceReport, PluginTestError> {
        on_calling_thread(|| {
            let usage = Arc::new(Usage::default());
            let guest = self.counted_guest(Arc::new(SystemRandom), &usage)?;
            let mut checks = vec![
                check("its description is the same each time", describes(&guest)),
                check(
                    "normalizing canonical parameters returns them unchanged",
                    idempotent(&guest),
                ),
                check("it refuses unknown parameters", refuses_unknown(&guest)),
                check(
                    "its values match its schema",
                    makes_values(&guest, now_seconds),
                ),
            ];
            if guest.description.entropy_bits_min.is_some() {
                let claim = "its value schema marks the secrets in random values";
                checks.push(check(claim, marks_secrets(&guest)));
            }
            for (number, vector) in (1..).zip(vectors) {
                let claim = format!("expectation {number} is met");
                checks.push(check(&claim, self.meets(vector, &usage)));
            }
            let (randomness, entropy) = self.randomness(&usage)?;
            checks.push(randomness);
            Ok(ConformanceReport {
                checks,
                limits: self.limits_used(&usage),
                entropy,
            })
        })?
    }

    /// Tests the randomness of a generator's values as a server does when it loads the component. Returns `false` for a resolver,
    /// and for a generator whose values are derived.
    ///
    /// # Errors
    /// If a server would refuse the component.
    pub fn is_random(&self) -> Result<bool, PluginTestError> {
        if self.is_resolver() {
            return Ok(false);
        }
        on_calling_thread(|| {
            let random = Arc::new(RepeatableRandom::new());
            let guest = self.guest(Arc::clone(&random) as Arc<dyn RandomSource>)?;
            let Some(declared_bits) = guest.description.entropy_bits_min else {
                return Ok(false);
            };
            let report = entropy_report(&guest, &random, declared_bits, Effort::AT_START);
            match report.map_err(|refusal| self.refused(refusal))?.fault() {
                Some(fault) => Err(self.refused(Refusal::NotRandom(fault.clone()))),
                None => Ok(true),
            }
        })?
    }

    /// Returns a guest whose calls are recorded in `usage`.
    fn counted_guest(
        &self,
        random: Arc<dyn RandomSource>,
        usage: &Arc<Usage>,
    ) -> Result<GeneratorGuest, PluginTestError> {
        let mut guest = self.guest(random)?;
        guest.plugin.usage = Arc::clone(usage);
        Ok(guest)
    }

    fn meets(&self, vector: &Vector, usage: &Arc<Usage>) -> Result<(), String> {
        let random = Arc::new(FixedBytes::new(vector.random.clone()));
        let guest = self.counted_guest(Arc::clone(&random) as Arc<dyn RandomSource>, usage);
        let outcome = guest.and_then(|guest| {
            let parameters =
                issuerless(&guest, &guest.requested(&vector.parameters.clone().into())?)?;
            Ok(guest.generate(parameters.to_json(), vector.now_seconds, None)?)
        });
        if random.has_run_out() {
            return Err(format!(
                "it requested more random bytes than the {} in the expectation",
                vector.random.len()
            ));
        }
        match (&vector.expected, outcome) {
            (Expected::Value(expected), Ok(value)) => {
                let value: Value = keywright_json::read(value.expose()).unwrap_or_default();
                let differs = || "it generated another value".to_owned();
                (value == *expected).then_some(()).ok_or_else(differs)
            }
            (Expected::Value(_), Err(failure)) => Err(failure.to_string()),
            (Expected::Refused(_), Ok(_)) => {
                Err("it generated a value instead of refusing the parameters".to_owned())
            }
            (Expected::Refused(field), Err(failure)) => match refused_field(&failure) {
                Some(refused) if refused == field => Ok(()),
                _ => Err(format!("expected a refusal of {field:?}, got: {failure}")),
            },
        }
    }

    fn limits_used(&self, usage: &Usage) -> Vec<LimitUsed> {
        let bytes = |bytes: usize| u64::try_from(bytes).unwrap_or(u64::MAX);
        let (limits, peaks) = (&self.config.limits, usage.peaks());
        let milliseconds = peaks.duration.as_nanos().div_ceil(1_000_000);
        [
            (
                "memory_bytes_max",
                peaks.memory_bytes,
                limits.memory_bytes_max,
            ),
            (
                "deadline_ms",
                u64::try_from(milliseconds).unwrap_or(u64::MAX),
                limits.deadline_ms,
            ),
            (
                "input_bytes_max",
                peaks.input_bytes,
                bytes(limits.input_bytes_max),
            ),
            (
                "output_bytes_max",
                peaks.output_bytes,
                bytes(limits.output_bytes_max),
            ),
        ]
        .map(|(limit, used, max)| LimitUsed { limit, used, max })
        .into()
    }

    fn randomness(
        &self,
        usage: &Arc<Usage>,
    ) -> Result<(Check, Option<EntropyReport>), PluginTestError> {
        let random = Arc::new(RepeatableRandom::new());
        let mut guest = self.counted_guest(Arc::clone(&random) as Arc<dyn RandomSource>, usage)?;
        // The test makes thousands of calls.
        guest.plugin.notes = None;
        let Some(declared_bits) = guest.description.entropy_bits_min else {
            let claim = "it declares derived values: its configuration needs derived = true";
            return Ok((check(claim, Ok(())), None));
        };
        let claim = format!("its values are random, with at least {declared_bits} bits");
        Ok(
            match entropy_report(&guest, &random, declared_bits, Effort::AT_TEST) {
                Ok(report) => {
                    let fault = report.fault().map(ToString::to_string);
                    (check(&claim, fault.map_or(Ok(()), Err)), Some(report))
                }
                Err(refusal) => (check(&claim, Err(refusal.to_string())), None),
            },
        )
    }
}

fn check(claim: &str, outcome: Result<(), String>) -> Check {
    Check {
        claim: claim.to_owned(),
        fault: outcome.err(),
    }
}

fn describes(guest: &GeneratorGuest) -> Result<(), String> {
    let described =
        || describe(&guest.plugin, &guest.exports).map_err(|refusal| refusal.to_string());
    let (one, other) = (described()?, described()?);
    let is_same = format!("{one:?}") == format!("{other:?}");
    is_same
        .then_some(())
        .ok_or_else(|| "two descriptions differ".to_owned())
}

fn idempotent(guest: &GeneratorGuest) -> Result<(), String> {
    let canonical = |given: &Parameters| {
        guest
            .canonical(given)
            .map_err(|failure| failure.to_string())
    };
    let once = canonical(&guest.description.parameters_schema.example())?;
    let twice = canonical(&once)?;
    let fields = |parameters: &Parameters| -> BTreeMap<String, Value> {
        let fields: Map<String, Value> =
            keywright_json::read(&parameters.to_json()).unwrap_or_default();
        fields.into_iter().collect()
    };
    if fields(&once) == fields(&twice) {
        return Ok(());
    }
    Err(format!(
        "it normalized {} to {}",
        once.to_json(),
        twice.to_json()
    ))
}

fn refuses_unknown(guest: &GeneratorGuest) -> Result<(), String> {
    let example = guest.description.parameters_schema.example();
    let mut fields: Map<String, Value> =
        keywright_json::read(&example.to_json()).unwrap_or_default();
    fields.insert(UNKNOWN_PARAMETER.to_owned(), Value::Bool(true));
    match guest.canonical(&Parameters::new(fields)) {
        Err(PluginCallError::ParametersRefused(_)) => Ok(()),
        Err(failure) => Err(failure.to_string()),
        Ok(_) => Err(format!(
            "it accepted {UNKNOWN_PARAMETER}; set additionalProperties to false, or reject it in normalize"
        )),
    }
}

fn makes_values(guest: &GeneratorGuest, now_seconds: u64) -> Result<(), String> {
    let example = guest.description.parameters_schema.example();
    let parameters = guest.canonical(&example);
    let parameters = parameters.map_err(|failure| failure.to_string())?;
    for _ in 0..VALUES {
        let outcome = guest.generate(parameters.to_json(), now_seconds, None);
        outcome.map_err(|failure| failure.to_string())?;
    }
    Ok(())
}

fn marks_secrets(guest: &GeneratorGuest) -> Result<(), String> {
    let marks = guest.description.value_schema.has_secrets();
    marks.then_some(()).ok_or_else(|| NO_SECRETS.to_owned())
}

/// The reason if the value schema marks no secret.
const NO_SECRETS: &str = "no part of its value is secret, so plugin run shows all of it, and recover receives all of it; \
     set \"writeOnly\": true on the whole value or on each secret field";

/// Returns the parameter that a refusal names, or an empty string for a refusal without a parameter. Returns `None` for other
/// errors.
fn refused_field(failure: &PluginTestError) -> Option<&str> {
    match failure {
        PluginTestError::Failed(PluginCallError::ParametersRefused(Violation {
            field, ..
        })) => Some(field.as_deref().unwrap_or_default()),
        _ => None,
    }
}

/// A test vector: the expected value, or the parameter that must be refused.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "JsonVector")]
pub struct Vector {
    /// The parameters of the request.
    pub(super) parameters: Map<String, Value>,
    /// All random bytes that the guest can draw.
    random: Vec<u8>,
    /// The time of the call, in seconds since 1970.
    now_seconds: u64,
    /// The expected result.
    expected: Expected,
}

/// An expected result.
#[derive(Clone, Debug)]
enum Expected {
    /// This value.
    Value(Value),
    /// A refusal that names this parameter, or no parameter if the string is empty.
    Refused(String),
}

/// The JSON form of a [`Vector`].
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct JsonVector {
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

impl TryFrom<JsonVector> for Vector {
    type Error = &'static str;

    fn try_from(json: JsonVector) -> Result<Self, Self::Error> {
        Ok(Self {
            parameters: json.parameters,
            random: bytes(&json.random).ok_or("random must be hexadecimal")?,
            now_seconds: json.now_seconds,
            expected: match (json.value, json.refused) {
                (Some(value), None) => Expected::Value(value),
                (None, Some(field)) => Expected::Refused(field),
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
    pub fn parse_all(text: &str) -> Result<Vec<Self>, VectorsError> {
        let vectors: Value = keywright_json::read(text).map_err(serde_json::Error::from)?;
        Ok(serde_json::from_value(vectors)?)
    }
}

/// The error for malformed test vectors.
#[derive(Debug, thiserror::Error)]
#[error(
    "expected a JSON array of objects with parameters, random, now_seconds, and either value or refused"
)]
pub struct VectorsError(#[from] serde_json::Error);

/// A random source with a fixed number of bytes.
struct FixedBytes {
    remaining: Mutex<std::vec::IntoIter<u8>>,
    has_run_out: AtomicBool,
}

impl FixedBytes {
    fn new(bytes: Vec<u8>) -> Self {
        Self {
            remaining: Mutex::new(bytes.into_iter()),
            has_run_out: AtomicBool::new(false),
        }
    }

    fn has_run_out(&self) -> bool {
        self.has_run_out.load(Ordering::Relaxed)
    }
}

impl RandomSource for FixedBytes {
    fn fill(&self, bytes: &mut [u8]) -> Result<(), RandomError> {
        let mut remaining = self
            .remaining
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        for byte in bytes {
            let Some(next) = remaining.next() else {
                self.has_run_out.store(true, Ordering::Relaxed);
                return Err(RandomError);
            };
            *byte = next;
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
        let source = FixedBytes::new(vec![1, 2, 3]);
        let mut bytes = [0; 2];
        source.fill(&mut bytes).unwrap();
        assert_eq!(bytes, [1, 2]);
        assert!(!source.has_run_out());
        assert!(source.fill(&mut bytes).is_err() && source.has_run_out());
    }
}
