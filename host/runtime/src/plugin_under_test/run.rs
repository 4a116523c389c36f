//! Single calls of a plugin under test, with fixed input if the result must be the same each time.

use std::{
    str::FromStr,
    sync::Arc,
    time::{Duration, Instant},
};

use aws_lc_rs::digest;
use keywright_core::{
    Secret,
    credential::{Lifetime, Parameters},
    ports::{PluginCallError, PluginFaultError, Reference},
};
use parking_lot::Mutex;
use serde_json::{Map, Value, json};

use super::{PluginTestError, PluginUnderTest, on_calling_thread};
use crate::{
    call::Usage,
    conformance::{RepeatableRandom, Stream},
    generator::{GeneratorGuest, TestInputs},
    host::{RandomError, RandomSource, SystemRandom},
};

/// A call of a plugin, as a server makes it for a request.
#[derive(Clone, Debug)]
pub enum PluginCall {
    /// Generates a value.
    Generate {
        /// The parameters of the request.
        parameters: Map<String, Value>,
        /// The inputs that replace the plugin's examples.
        inputs: TestInputs,
    },
    /// Sets a credential to this value.
    Accept(Value),
    /// Recovers the parameters of a stored value.
    Recover {
        /// The stored parameters, if any.
        parameters: Option<Map<String, Value>>,
        /// The stored value.
        value: Value,
    },
    /// Finds the references in this document.
    FindReferences(Value),
}

/// The results of a call.
pub struct Run {
    /// By name: `canonical` (parameters) and `value` of [`PluginCall::Generate`], `value` of [`PluginCall::Accept`], `recovered`,
    /// or `references`.
    pub results: Map<String, Value>,
    /// The same results. The secret parts of the value are redacted.
    pub redacted: Map<String, Value>,
    /// When a value expires and should be rotated, if it is not a certificate.
    pub lifetime: Lifetime,
    /// The duration of the call, including instantiation.
    pub took: Duration,
}

/// A source of random bytes for a call.
#[derive(Clone, Debug)]
pub enum TestRandom {
    /// The random generator of the server.
    System,
    /// Exactly these bytes.
    Bytes(Vec<u8>),
    /// An unlimited number of bytes that are derived from this text.
    Seed(String),
}

impl FromStr for TestRandom {
    type Err = &'static str;

    /// Parses `seed:TEXT`, or bytes in hexadecimal.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if let Some(seed) = text.strip_prefix(SEED_PREFIX) {
            return Ok(Self::Seed(seed.to_owned()));
        }
        let bytes = hex::decode(text).map(Self::Bytes);
        bytes.map_err(|_| "must be hexadecimal digits, or seed:TEXT")
    }
}

/// The input of a call in addition to its arguments.
pub(super) struct CallContext<'c> {
    /// Settings that replace the plugin's settings, if any.
    pub(super) settings: Option<&'c Map<String, Value>>,
    pub(super) random: &'c TestRandom,
    pub(super) now_seconds: u64,
    /// Whether the parameters of [`PluginCall::Generate`] are only normalized.
    pub(super) normalizes_only: bool,
    pub(super) usage: Arc<Usage>,
}

impl PluginUnderTest {
    /// Makes one call, as a server does for a request at the time `now_seconds`. If the parameters name an issuer, the test CA
    /// signs.
    pub fn run(
        &self,
        call: &PluginCall,
        now_seconds: u64,
        random: &TestRandom,
    ) -> Result<Run, PluginTestError> {
        let context = CallContext {
            settings: None,
            random,
            now_seconds,
            normalizes_only: false,
            usage: Arc::default(),
        };
        let outcome = on_calling_thread(|| self.call(call, &context))?;
        outcome.map_err(|failure| match failure {
            PluginTestError::Failed(PluginCallError::Faulted {
                plugin,
                fault: fault @ (PluginFaultError::Misconfigured | PluginFaultError::Reported),
            }) if self.notes.is_some() => PluginTestError::Noted { plugin, fault },
            failure => failure,
        })
    }

    /// Makes one call on this thread.
    pub(super) fn call(
        &self,
        call: &PluginCall,
        context: &CallContext<'_>,
    ) -> Result<Run, PluginTestError> {
        match context.random {
            TestRandom::System => self.call_drawing(call, context, Arc::new(SystemRandom)),
            TestRandom::Bytes(bytes) => {
                let random = FixedBytes(Mutex::new(Some(bytes.clone().into_iter())));
                let random = Arc::new(random);
                let source = Arc::clone(&random) as Arc<dyn RandomSource>;
                let outcome = self.call_drawing(call, context, source);
                if random.0.lock().is_none() {
                    return Err(PluginTestError::RandomExhausted(bytes.len()));
                }
                outcome
            }
            TestRandom::Seed(text) => {
                let mut seed = [0; 32];
                seed.copy_from_slice(digest::digest(&digest::SHA256, text.as_bytes()).as_ref());
                let random = RepeatableRandom::new();
                random.begin(Stream::new(seed, 0));
                self.call_drawing(call, context, Arc::new(random))
            }
        }
    }

    fn call_drawing(
        &self,
        call: &PluginCall,
        context: &CallContext<'_>,
        random: Arc<dyn RandomSource>,
    ) -> Result<Run, PluginTestError> {
        let usage = &context.usage;
        if let PluginCall::FindReferences(document) = call {
            let resolver = self.resolver(context.settings, random, usage)?;
            let begun = Instant::now();
            let found = resolver.find_references(&document.to_string())?;
            let took = begun.elapsed();
            let references = found.into_iter().map(reference_json).collect();
            let results = Map::from_iter([("references".to_owned(), references)]);
            return Ok(Run {
                redacted: results.clone(),
                results,
                lifetime: Lifetime::default(),
                took,
            });
        }
        let guest = self.guest(context.settings, random, usage)?;
        let begun = Instant::now();
        let (results, lifetime) = self.generator_results(&guest, call, context)?;
        let took = begun.elapsed();
        let mut redacted = results.clone();
        if let Some(value) = redacted.get_mut("value") {
            guest.description.value_schema.secrecy.redact(value);
        }
        Ok(Run {
            results,
            redacted,
            lifetime,
            took,
        })
    }

    fn generator_results(
        &self,
        guest: &GeneratorGuest,
        call: &PluginCall,
        context: &CallContext<'_>,
    ) -> Result<(Map<String, Value>, Lifetime), PluginTestError> {
        let mut results = Map::new();
        let mut lifetime = Lifetime::default();
        match call {
            PluginCall::Generate {
                parameters: given,
                inputs,
            } => {
                let parameters = guest.canonical(&guest.requested(&given.clone().into())?)?;
                let canonical = Value::Object(parameters.clone().into_fields());
                results.insert("canonical".to_owned(), canonical);
                if !context.normalizes_only {
                    if let Some(name) = guest.input_parameters.first_unnamed(&parameters, inputs)? {
                        return Err(PluginTestError::InputNotNamed(name.requested().to_owned()));
                    }
                    let now_seconds = context.now_seconds;
                    let issuer = guest.test_issuer(&self.host.issuers, &parameters, now_seconds);
                    let inputs = guest.input_parameters.test_inputs(&parameters, inputs)?;
                    let parameters = parameters.to_json();
                    let value = guest.generate(parameters.clone(), now_seconds, issuer, &inputs)?;
                    lifetime = guest.lifetime(Some(parameters), &value, now_seconds)?;
                    results.insert("value".to_owned(), json_of(&value));
                }
            }
            PluginCall::Accept(value) => {
                let value = Secret::new(value.to_string());
                let accepted = guest.accept(&value)?;
                lifetime = guest.lifetime(None, &accepted, context.now_seconds)?;
                results.insert("value".to_owned(), json_of(&accepted));
            }
            PluginCall::Recover { parameters, value } => {
                if guest.exports.recoverer.is_none() {
                    return Err(PluginTestError::NoRecoverer);
                }
                let parameters = parameters
                    .clone()
                    .map(|stored| Parameters::new(stored).to_json());
                let recovered = guest.recover(parameters, &Secret::new(value.to_string()))?;
                let recovered = json!({
                    "parameters": recovered.parameters.into_fields(),
                    "complete": recovered.is_complete,
                });
                results.insert("recovered".to_owned(), recovered);
            }
            // A generator has no references.
            PluginCall::FindReferences(_) => {}
        }
        Ok((results, lifetime))
    }
}

/// Parses a value that the host has validated, so it is JSON.
fn json_of(value: &Secret) -> Value {
    keywright_json::read(value.expose()).unwrap_or_default()
}

fn reference_json(reference: Reference) -> Value {
    let mut json = json!({"pointer": reference.pointer, "name": reference.name});
    if let Some(fields) = json.as_object_mut() {
        let range = reference.range.map(|range| json!([range.start, range.end]));
        fields.extend(range.map(|range| ("range".to_owned(), range)));
        if !reference.fields.is_empty() {
            fields.insert("fields".to_owned(), json!(reference.fields));
        }
        if reference.is_any_type {
            fields.insert("any_type".to_owned(), Value::Bool(true));
        }
    }
    json
}

/// A random source with a fixed number of bytes; `None` after a request for more.
struct FixedBytes(Mutex<Option<std::vec::IntoIter<u8>>>);

impl RandomSource for FixedBytes {
    fn fill(&self, bytes: &mut [u8]) -> Result<(), RandomError> {
        let mut remaining = self.0.lock();
        for byte in bytes {
            let Some(next) = remaining.as_mut().and_then(Iterator::next) else {
                *remaining = None;
                return Err(RandomError);
            };
            *byte = next;
        }
        Ok(())
    }
}

pub(super) const SEED_PREFIX: &str = "seed:";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_source_fails_when_its_bytes_run_out() {
        let source = FixedBytes(Mutex::new(Some(vec![1, 2, 3].into_iter())));
        let mut bytes = [0; 2];
        source.fill(&mut bytes).unwrap();
        assert_eq!(bytes, [1, 2]);
        assert!(source.0.lock().is_some());
        assert!(source.fill(&mut bytes).is_err() && source.0.lock().is_none());
    }
}
