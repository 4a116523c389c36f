//! Test vectors: a call of a plugin with fixed input, and its expected result.

use std::sync::Arc;

use keywright_core::ports::{PluginCallError, PluginFaultError};
use serde::{Deserialize, Serialize, de::Error as _};
use serde_json::{Map, Value};

use super::{
    Check, PluginTestError, PluginUnderTest,
    run::{CallContext, PluginCall, SEED_PREFIX, TestRandom},
};
use crate::{
    call::Usage,
    generator::{TestInputs, unlogged},
    load_error::PluginRefusedError,
};

/// A test vector.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "JsonVector")]
pub struct Vector {
    call: PluginCall,
    /// The settings, instead of the plugin's.
    settings: Option<Map<String, Value>>,
    random: TestRandom,
    /// The time of the call, in seconds since 1970.
    now_seconds: u64,
    /// The expected results by name, or the expected error: `refused` with the name of the field (empty if there is none), or
    /// `misconfigured`.
    expected: Map<String, Value>,
}

/// The JSON form of a [`Vector`]: exactly one call, and its expected results or error.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a JSON object")]
struct JsonVector {
    parameters: Option<Map<String, Value>>,
    #[serde(default)]
    inputs: TestInputs,
    accept: Option<Value>,
    recover: Option<JsonStored>,
    document: Option<Value>,
    settings: Option<Map<String, Value>>,
    random: Option<String>,
    #[serde(default)]
    now_seconds: u64,
    canonical: Option<Map<String, Value>>,
    value: Option<Value>,
    recovered: Option<Value>,
    references: Option<Vec<Value>>,
    refused: Option<String>,
    misconfigured: Option<bool>,
}

/// A stored value.
#[derive(Deserialize)]
#[serde(
    deny_unknown_fields,
    expecting = "a JSON object with the field `value`"
)]
struct JsonStored {
    parameters: Option<Map<String, Value>>,
    value: Value,
}

impl TryFrom<JsonVector> for Vector {
    type Error = &'static str;

    fn try_from(json: JsonVector) -> Result<Self, Self::Error> {
        let has_inputs = json.inputs != TestInputs::default();
        let (call, results): (_, &[&str]) =
            match (json.parameters, json.accept, json.recover, json.document) {
                (None, Some(value), None, None) => (PluginCall::Accept(value), &["value"]),
                (None, None, Some(JsonStored { parameters, value }), None) => {
                    (PluginCall::Recover { parameters, value }, &["recovered"])
                }
                (None, None, None, Some(document)) => {
                    (PluginCall::FindReferences(document), &["references"])
                }
                (given, None, None, None) => {
                    let call = PluginCall::Generate {
                        parameters: given.unwrap_or_default(),
                        inputs: json.inputs,
                    };
                    (call, &["canonical", "value"])
                }
                _ => return Err("only one of parameters, accept, recover and document is allowed"),
            };
        if has_inputs && !matches!(call, PluginCall::Generate { .. }) {
            return Err("inputs are only allowed with parameters");
        }
        let expected: Map<String, Value> = [
            ("canonical", json.canonical.map(Value::Object)),
            ("value", json.value),
            ("recovered", json.recovered),
            ("references", json.references.map(Value::Array)),
            ("refused", json.refused.map(Value::String)),
            ("misconfigured", json.misconfigured.map(Value::Bool)),
        ]
        .into_iter()
        .filter_map(|(name, expected)| Some((name.to_owned(), expected?)))
        .collect();
        let are_results = expected.keys().all(|name| results.contains(&name.as_str()));
        let is_error =
            ["refused", "misconfigured"].map(|error| expected.contains_key(error)) != [false; 2];
        if expected.is_empty() || !(are_results || is_error && expected.len() == 1) {
            return Err(EXPECTED);
        }
        Ok(Self {
            call,
            settings: json.settings,
            random: json.random.as_deref().unwrap_or(SEED_PREFIX).parse()?,
            now_seconds: json.now_seconds,
            expected,
        })
    }
}

/// The rule for expected results.
const EXPECTED: &str = "the expected result must be `canonical` or `value` for `parameters`, `value` for `accept`, `recovered` for \
     `recover` and `references` for `document`; for an expected error, it must be `refused` or `misconfigured`";

impl Vector {
    /// Parses a JSON array of vectors.
    pub fn parse_all(text: &str) -> Result<Vec<Self>, VectorsError> {
        let vectors: Value = keywright_json::read(text).map_err(serde_json::Error::from)?;
        let vectors: Vec<Value> = serde_json::from_value(vectors)?;
        let numbered = (1..).zip(vectors);
        numbered
            .map(|(number, vector)| {
                check_fields(&vector)
                    .and_then(|()| serde_json::from_value(vector))
                    .map_err(|source| VectorsError::Malformed { number, source })
            })
            .collect()
    }

    /// Returns the parameters, if the vector generates a value with the plugin's own settings.
    pub(super) fn parameters(&self) -> Option<&Map<String, Value>> {
        match &self.call {
            PluginCall::Generate { parameters, .. } if self.settings.is_none() => Some(parameters),
            _ => None,
        }
    }
}

/// Checks the type of each field on its own, so that the error names the field.
fn check_fields(vector: &Value) -> Result<(), serde_json::Error> {
    for (name, value) in vector.as_object().into_iter().flatten() {
        let alone = Map::from_iter([(name.clone(), value.clone())]);
        let checked = serde_json::from_value::<JsonVector>(Value::Object(alone));
        if let Err(cause) = checked
            && !cause.to_string().starts_with("unknown field")
        {
            let cause = cause.to_string();
            let rule = match cause.split_once(", expected ") {
                Some((_, "a map")) => "must be a JSON object".to_owned(),
                Some((_, expected)) => format!("must be {expected}"),
                None => cause,
            };
            return Err(serde_json::Error::custom(format!("{name}: {rule}")));
        }
    }
    Ok(())
}

/// The error for malformed test vectors.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the variants mean")]
pub enum VectorsError {
    #[error("must be a JSON array of test vectors")]
    NotAnArray(#[from] serde_json::Error),
    #[error("test vector {number} is invalid")]
    Malformed {
        /// The number of the vector, from 1.
        number: u32,
        source: serde_json::Error,
    },
}

/// A result that differs from the expected result.
#[derive(Debug, Serialize)]
pub struct Mismatch {
    /// The expected results or the expected error.
    pub expected: Value,
    /// The results or the error.
    pub returned: Value,
}

impl PluginUnderTest {
    pub(super) fn meets(&self, claim: String, vector: &Vector, usage: &Arc<Usage>) -> Check {
        let expected = &vector.expected;
        let context = CallContext {
            settings: vector.settings.as_ref(),
            random: &vector.random,
            now_seconds: vector.now_seconds,
            normalizes_only: expected.keys().eq(["canonical"]),
            usage: Arc::clone(usage),
        };
        let call = || self.call(&vector.call, &context);
        let outcome = if expected.contains_key("misconfigured") {
            unlogged(call)
        } else {
            call()
        };
        let (fault, returned) = match outcome {
            Ok(mut run) => {
                let is_expected = |name: &String| expected.contains_key(name);
                if run.results.keys().any(is_expected) {
                    run.results.retain(|name, _| is_expected(name));
                }
                ("the result differs".to_owned(), run.results)
            }
            Err(failure) => match reported(&failure) {
                Some(error) => (failure.to_string(), error),
                None => {
                    return Check {
                        claim,
                        fault: Some(failure.to_string()),
                        mismatch: None,
                    };
                }
            },
        };
        let is_met = returned == *expected;
        let mismatch = || Mismatch {
            expected: Value::Object(expected.clone()),
            returned: Value::Object(returned),
        };
        Check {
            claim,
            fault: (!is_met).then_some(fault),
            mismatch: (!is_met).then(mismatch),
        }
    }
}

/// Returns an error that a vector can expect.
fn reported(failure: &PluginTestError) -> Option<Map<String, Value>> {
    let failure = match failure {
        PluginTestError::Refused(refused) => {
            let is_misconfigured =
                matches!(refused.refusal, PluginRefusedError::SettingsRefused(_));
            return is_misconfigured.then(misconfigured);
        }
        PluginTestError::Failed(failure) => failure,
        _ => return None,
    };
    let field = match failure {
        PluginCallError::ParametersRefused(violation)
        | PluginCallError::ValueRefused(violation) => violation.field.as_deref(),
        PluginCallError::ValueFieldUnknown(field) => Some(field.as_str()),
        PluginCallError::DocumentRefused(_) => None,
        PluginCallError::Faulted {
            fault: PluginFaultError::Misconfigured,
            ..
        } => return Some(misconfigured()),
        _ => return None,
    };
    let field = field.unwrap_or_default();
    Some(Map::from_iter([("refused".to_owned(), field.into())]))
}

fn misconfigured() -> Map<String, Value> {
    Map::from_iter([("misconfigured".to_owned(), true.into())])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vector_has_one_call_and_its_results_or_an_error() {
        for text in [
            r#"[{"parameters": {}, "random": "00ff", "now_seconds": 1, "value": {"a": 1}}]"#,
            r#"[{"value": 1}, {"refused": "length"}, {"refused": ""}]"#,
            r#"[{"canonical": {}}, {"canonical": {}, "value": 1}, {"misconfigured": true}]"#,
            r#"[{"accept": 1, "value": 1}, {"accept": 1, "settings": {"a": 1}, "refused": ""}]"#,
            r#"[{"recover": {"value": 1}, "recovered": {}, "random": "seed:any text"}]"#,
            r#"[{"document": [], "references": []}, {"document": [], "refused": ""}]"#,
            r#"[{"inputs": {"/a": {"type": "password", "value": "b"}}, "value": 1}]"#,
        ] {
            assert!(Vector::parse_all(text).is_ok(), "{text}");
        }
        for text in [
            "{}",
            "[{}]",
            r#"[{"value": 1, "refused": "a"}]"#,
            r#"[{"refused": "a", "misconfigured": true}]"#,
            r#"[{"value": 1, "random": "0"}]"#,
            r#"[{"value": 1, "random": "zz"}]"#,
            r#"[{"value": 1, "random": "+f"}]"#,
            r#"[{"value": 1, "parameter": {}}]"#,
            r#"[{"parameters": {}, "accept": 1, "value": 1}]"#,
            r#"[{"accept": 1, "canonical": {}}]"#,
            r#"[{"document": {}, "value": 1}]"#,
            r#"[{"recover": {"value": 1}, "value": 1}]"#,
            r#"[{"recover": {}, "recovered": {}}]"#,
            r#"[{"inputs": {"/a": {"type": "a b", "value": "b"}}, "value": 1}]"#,
            r#"[{"inputs": {"/a": {"type": "password"}}, "value": 1}]"#,
            r#"[{"inputs": {"/a": {"type": "password", "value": "b"}}, "accept": 1, "value": 1}]"#,
        ] {
            assert!(Vector::parse_all(text).is_err(), "{text}");
        }
    }
}
