//! Testing a plugin against its contract, and with test vectors.

use std::sync::Arc;

use keywright_core::{credential::Parameters, ports::PluginCallError, text::for_log};
use serde::Serialize;
use serde_json::Value;

use super::{
    EMPTY_DOCUMENT, PluginTestError, PluginUnderTest, on_calling_thread,
    vectors::{Mismatch, Vector},
};
use crate::{
    call::{Plugin, Usage},
    conformance::{Effort, EntropyReport, RepeatableRandom},
    generator::{GeneratorGuest, TestInputs, entropy_report},
    host::{RandomSource, SystemRandom, TestIssuers},
    load_error::PluginRefusedError,
    schema::Secrecy,
};

/// The number of values generated to check them against their schema.
const VALUES: u32 = 20;
/// The keywords of a schema whose arguments are values, not schemas.
const VALUE_KEYWORDS: [&str; 4] = ["const", "default", "enum", "examples"];
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
    pub fn is_passed(&self) -> bool {
        self.checks.iter().all(|check| check.fault.is_none())
    }
}

/// One check.
#[derive(Debug, Serialize)]
pub struct Check {
    /// The expected behavior.
    pub claim: String,
    /// The deviation, if the check failed.
    pub fault: Option<String>,
    /// The unexpected result of a test vector.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mismatch: Option<Mismatch>,
}

/// The usage of a limit.
#[derive(Debug, Serialize)]
pub struct LimitUsed {
    /// The name of the limit's setting.
    pub limit: &'static str,
    /// The peak usage of a call.
    pub used: u64,
    /// The limit's value.
    pub max: u64,
}

impl PluginUnderTest {
    /// Tests a generator with the first example in its parameters schema, or a resolver with an empty document. Also runs
    /// `vectors`.
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
            let mut checks = Vec::new();
            let mut entropy = None;
            let (plugin, generator) = self.unchecked()?;
            let schemas = plugin.settings_schema.iter().map(|schema| &schema.declared);
            let generator = generator.iter();
            let described = generator.flat_map(|it| [&it.parameters_schema, &it.value_schema]);
            for schema in schemas.chain(described) {
                self.note_formats(schema);
            }
            if !self.has_valid_settings(&plugin, &mut checks) {
                // All other calls need valid settings.
            } else if self.is_resolver() {
                let resolver = self.resolver(None, Arc::new(SystemRandom), &usage)?;
                self.check(
                    &mut checks,
                    "it accepts a document without references",
                    || {
                        let found = resolver.find_references(EMPTY_DOCUMENT);
                        found.map(drop).map_err(|failure| failure.to_string())
                    },
                );
                self.check_vectors(&mut checks, vectors, &usage);
            } else {
                self.check_contract(&mut checks, now_seconds, &usage)?;
                self.check_vectors(&mut checks, vectors, &usage);
                entropy = self.check_randomness(&mut checks, &usage)?;
            }
            Ok(ConformanceReport {
                checks,
                limits: self.limits_used(&usage),
                entropy,
            })
        })?
    }

    /// Checks the settings against the schema that the plugin declares, if any, and returns whether they are valid.
    fn has_valid_settings(&self, plugin: &Plugin, checks: &mut Vec<Check>) -> bool {
        if plugin.settings_schema.is_none() {
            return true;
        }
        let checked = plugin.check_settings();
        let is_valid = checked.is_ok();
        self.check(checks, "its settings match their schema", || {
            checked.map_err(|refusal| refusal.to_string())
        });
        is_valid
    }

    /// Reports each `format` in a schema to the reader of notes, because the host ignores it.
    fn note_formats(&self, schema: &Value) {
        match schema {
            Value::Object(keywords) => {
                if let (Some(reader), Some(Value::String(format))) =
                    (&self.notes, keywords.get("format"))
                {
                    let format = for_log(format);
                    let note = format!(
                        r#"the host ignores "format": "{format}" in a schema; use "pattern""#
                    );
                    reader("describe", &note);
                }
                let arguments = keywords.iter();
                arguments
                    .filter(|(keyword, _)| !VALUE_KEYWORDS.contains(&keyword.as_str()))
                    .for_each(|(_, argument)| self.note_formats(argument));
            }
            Value::Array(items) => items.iter().for_each(|item| self.note_formats(item)),
            _ => {}
        }
    }

    fn check_contract(
        &self,
        checks: &mut Vec<Check>,
        now_seconds: u64,
        usage: &Arc<Usage>,
    ) -> Result<(), PluginTestError> {
        let guest = self.guest(None, Arc::new(SystemRandom), usage)?;
        let claim = "its description is the same each time";
        self.check(checks, claim, || describes(&guest));
        let claim = "normalizing canonical parameters returns them unchanged";
        self.check(checks, claim, || idempotent(&guest));
        let claim = "it refuses unknown parameters";
        self.check(checks, claim, || refuses_unknown(&guest));
        let claim = "its values match its schema, and their lifetimes are valid";
        self.check(checks, claim, || {
            makes_values(&guest, now_seconds, &self.host.issuers)
        });
        if guest.description.entropy_bits_min.is_some() {
            let claim = "its value schema marks the secrets in random values";
            self.check(checks, claim, || marks_secrets(&guest));
        }
        Ok(())
    }

    fn check(
        &self,
        checks: &mut Vec<Check>,
        claim: &str,
        outcome: impl FnOnce() -> Result<(), String>,
    ) {
        self.host.begin(claim);
        checks.push(Check {
            claim: claim.to_owned(),
            fault: outcome().err(),
            mismatch: None,
        });
    }

    fn check_vectors(&self, checks: &mut Vec<Check>, vectors: &[Vector], usage: &Arc<Usage>) {
        for (number, vector) in (1..).zip(vectors) {
            let claim = format!("test vector {number}");
            self.host.begin(&claim);
            checks.push(self.meets(claim, vector, usage));
        }
    }

    /// Tests the randomness of a generator's values as a server does when it loads the component. Accepts a resolver, and a
    /// generator whose values are derived.
    pub fn test_randomness(&self) -> Result<(), PluginTestError> {
        if self.is_resolver() {
            return Ok(());
        }
        on_calling_thread(|| {
            let random = Arc::new(RepeatableRandom::new());
            let source = Arc::clone(&random) as Arc<dyn RandomSource>;
            let guest = self.guest(None, source, &Arc::default())?;
            let Some(declared_bits) = guest.description.entropy_bits_min else {
                return Ok(());
            };
            let effort = Effort::AT_START;
            let issuers = &self.host.issuers;
            let report = entropy_report(&guest, &random, declared_bits, effort, issuers, &|_| {});
            match report.map_err(|refusal| self.refused(refusal))?.fault() {
                Some(fault) => Err(self.refused(PluginRefusedError::NotRandom(fault.clone()))),
                None => Ok(()),
            }
        })?
    }

    fn limits_used(&self, usage: &Usage) -> Vec<LimitUsed> {
        let limits = self.config.limits.each().into_iter();
        limits
            .zip(usage.peaks().each())
            .map(|((limit, max, _), (_, used, _))| LimitUsed { limit, used, max })
            .collect()
    }

    fn check_randomness(
        &self,
        checks: &mut Vec<Check>,
        usage: &Arc<Usage>,
    ) -> Result<Option<EntropyReport>, PluginTestError> {
        let random = Arc::new(RepeatableRandom::new());
        let source = Arc::clone(&random) as Arc<dyn RandomSource>;
        let mut guest = self.guest(None, source, usage)?;
        // The test makes thousands of calls.
        guest.plugin.notes = None;
        let Some(declared_bits) = guest.description.entropy_bits_min else {
            let claim = "it declares derived values: its configuration needs derived = true";
            self.check(checks, claim, || Ok(()));
            return Ok(None);
        };
        let claim = format!("its values are random, with at least {declared_bits} bits");
        let (effort, issuers) = (Effort::AT_TEST, &self.host.issuers);
        let progress = |values| self.host.begin(&format!("{claim}: value {values}"));
        let report = entropy_report(&guest, &random, declared_bits, effort, issuers, &progress);
        self.check(checks, &claim, || match &report {
            Ok(report) => report
                .fault()
                .map_or(Ok(()), |fault| Err(fault.to_string())),
            Err(refusal) => Err(refusal.to_string()),
        });
        Ok(report.ok())
    }
}

fn describes(guest: &GeneratorGuest) -> Result<(), String> {
    let described = || {
        let described = guest.exports.describe(&guest.plugin);
        described.map_err(|refusal| refusal.to_string())
    };
    let is_same = format!("{:?}", described()?) == format!("{:?}", described()?);
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
    if once == twice {
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
    let mut fields = example.into_fields();
    fields.insert(UNKNOWN_PARAMETER.to_owned(), Value::Bool(true));
    match guest.canonical(&Parameters::new(fields)) {
        Err(PluginCallError::ParametersRefused(_)) => Ok(()),
        Err(failure) => Err(failure.to_string()),
        Ok(_) => Err(format!(
            "it accepted {UNKNOWN_PARAMETER}; set additionalProperties to false, or reject it in normalize"
        )),
    }
}

fn makes_values(
    guest: &GeneratorGuest,
    now_seconds: u64,
    issuers: &TestIssuers,
) -> Result<(), String> {
    let example = guest.description.parameters_schema.example();
    let parameters = guest.canonical(&example);
    let parameters = parameters.map_err(|failure| failure.to_string())?;
    for _ in 0..VALUES {
        let issuer = guest.test_issuer(issuers, &parameters, now_seconds);
        let inputs = guest
            .input_parameters
            .test_inputs(&parameters, &TestInputs::default());
        let outcome = inputs
            .and_then(|inputs| guest.generate(parameters.to_json(), now_seconds, issuer, &inputs))
            .and_then(|value| guest.lifetime(Some(parameters.to_json()), &value, now_seconds));
        outcome.map_err(|failure| failure.to_string())?;
    }
    Ok(())
}

fn marks_secrets(guest: &GeneratorGuest) -> Result<(), String> {
    match guest.description.value_schema.secrecy {
        Secrecy::Open => Err(NO_SECRETS.to_owned()),
        Secrecy::Fields(_) | Secrecy::Whole => Ok(()),
    }
}

/// The fault of a value schema that marks no secret.
const NO_SECRETS: &str = "no part of its value is secret, so plugin run shows all of it, and recover receives all of it; \
     set \"writeOnly\": true on the whole value or on each secret field";
