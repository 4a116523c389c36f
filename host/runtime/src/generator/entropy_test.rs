//! Running the entropy test on a generator with its example parameters.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use aws_lc_rs::digest;
use keywright_core::{
    credential::Parameters,
    ports::{PluginCallError, PluginFaultError},
    text::for_log,
};
use serde_json::Value;
use tracing::subscriber::NoSubscriber;

use super::{guest::GeneratorGuest, inputs::TestInputs};
use crate::{
    call::processor_time,
    conformance::{
        Effort, EntropyReport, GeneratedValue, RepeatableRandom, Stream, Subject, examine,
    },
    host::TestIssuers,
    load_error::PluginRefusedError,
    schema::SensitiveJson,
};

/// The label from which the test's streams are derived.
const SEED_LABEL: &[u8] = b"keywright entropy conformance, version 1";

/// The time that each call of the test gets, in seconds since 1970: the first of January 2026.
const NOW_SECONDS: u64 = 1_767_225_600;

/// Tests a generator that draws from `random` and declares this number of random bits. If the example parameters name an
/// issuer, the test CA signs. `progress` receives the number of generated values.
///
/// # Errors
/// [`PluginRefusedError::ExampleFailed`] if it fails to generate a value from its example parameters, and
/// [`PluginRefusedError::SettingsRefused`] if it reports that its settings are invalid.
pub(crate) fn entropy_report(
    guest: &GeneratorGuest,
    random: &Arc<RepeatableRandom>,
    declared_bits: u32,
    effort: Effort,
    issuers: &TestIssuers,
    progress: &dyn Fn(u32),
) -> Result<EntropyReport, PluginRefusedError> {
    let mut seed = [0; digest::SHA256_OUTPUT_LEN];
    let label = [SEED_LABEL, guest.plugin.identity.digest.as_bytes()].concat();
    let digest = digest::digest(&digest::SHA256, &label);
    seed.copy_from_slice(digest.as_ref());
    let examined = unlogged(|| {
        let example = guest.description.parameters_schema.example();
        let mut example = Example {
            guest,
            random,
            parameters: guest.canonical(&example)?,
            issuers,
            progress,
            values: 0,
        };
        examine(&mut example, declared_bits, seed, effort)
    });
    examined.map_err(|failure| match failure {
        PluginCallError::Faulted {
            fault: PluginFaultError::Misconfigured,
            ..
        } => PluginRefusedError::SettingsRefused(
            "the plugin rejected them; `keywright plugin run` prints its message".to_owned(),
        ),
        failure => PluginRefusedError::ExampleFailed {
            parameters: for_log(&guest.description.parameters_schema.example().to_json()),
            failure: Box::new(failure),
        },
    })
}

/// A generator's guest with its example parameters.
struct Example<'g> {
    guest: &'g GeneratorGuest,
    random: &'g RepeatableRandom,
    parameters: Parameters,
    issuers: &'g TestIssuers,
    progress: &'g dyn Fn(u32),
    /// The number of generated values.
    values: u32,
}

impl Example<'_> {
    /// Returns the secret parts of a value as text, without nulls and booleans.
    fn secrets(&self, value: &Value) -> BTreeMap<String, String> {
        let parts = self.guest.description.value_schema.secrecy.parts(value);
        let texts = parts.into_iter().filter_map(|(path, part)| match part {
            Value::Null | Value::Bool(_) => None,
            Value::String(text) => Some((path, text.clone())),
            other => Some((path, other.to_string())),
        });
        texts.collect()
    }
}

impl Subject for Example<'_> {
    type Failure = PluginCallError;

    fn generate(&mut self, stream: Stream) -> Result<GeneratedValue, PluginCallError> {
        self.random.begin(stream);
        let (guest, parameters) = (self.guest, &self.parameters);
        let issuer = guest.test_issuer(self.issuers, parameters, NOW_SECONDS);
        let inputs = guest
            .input_parameters
            .test_inputs(parameters, &TestInputs::default())?;
        let value = guest.generate(parameters.to_json(), NOW_SECONDS, issuer, &inputs)?;
        self.values += 1;
        (self.progress)(self.values);
        let drawn_bits = self.random.drawn_bits();
        // The value was validated against its schema, so it is JSON.
        let secrets = SensitiveJson::parse(&value)
            .map(|json| self.secrets(json.value()))
            .unwrap_or_default();
        Ok(GeneratedValue {
            text: value.expose().to_owned(),
            secrets,
            drawn_bits,
        })
    }

    /// Returns the processor time of this thread, on which the guest runs.
    fn processor_time(&self) -> Duration {
        processor_time()
    }
}

/// Makes calls without logging; the caller reports their result.
pub(crate) fn unlogged<T>(work: impl FnOnce() -> T) -> T {
    tracing::subscriber::with_default(NoSubscriber::new(), work)
}
