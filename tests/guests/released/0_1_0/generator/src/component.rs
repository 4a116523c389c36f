//! The whole plugin, for whatever version it is built.

use crate::bindings::{
    exports::keywright::generator::{acceptor, descriptor, generator, normalizer, recoverer},
    keywright::generator::types::{Failure, Violation},
    wasi::random::random::{get_random_bytes, get_random_u64},
};

pub(crate) struct Component;

impl descriptor::Guest for Component {
    fn describe() -> descriptor::Description {
        descriptor::Description {
            credential_type: crate::CREDENTIAL_TYPE.to_owned(),
            plugin_version: "1.0.0".to_owned(),
            summary: "Says which of its functions were called.".to_owned(),
            parameters_schema: r#"{
                "type": "object",
                "properties": {"label": {"enum": ["normalized", "recovered"]}},
                "additionalProperties": false
            }"#
            .to_owned(),
            value_schema: r#"{
                "type": "object",
                "properties": {
                    "accepted": {"const": true},
                    "given": {"type": "object"},
                    "now": {"type": "integer"},
                    "secret": {"type": "string", "writeOnly": true},
                    "settings": {"type": "object"}
                },
                "required": ["secret"],
                "additionalProperties": false
            }"#
            .to_owned(),
            issuer_parameter: None,
            entropy_bits_min: Some(128),
        }
    }
}

impl generator::Guest for Component {
    fn generate(generation: generator::Generation) -> Result<String, Failure> {
        let low = get_random_bytes(8)
            .iter()
            .fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
        Ok(format!(
            r#"{{"given": {}, "now": {}, "secret": "{:016x}{low:016x}", "settings": {}}}"#,
            generation.parameters,
            generation.now_seconds,
            get_random_u64(),
            generation.settings,
        ))
    }
}

impl normalizer::Guest for Component {
    fn normalize(parameters: String, _settings: String) -> Result<String, Failure> {
        match parameters.as_str() {
            "{}" => Ok(r#"{"label":"normalized"}"#.to_owned()),
            labelled if labelled.contains(r#""normalized""#) => Ok(parameters),
            labelled if labelled.contains(r#""recovered""#) => Ok(parameters),
            _ => Err(Failure::InvalidParameters(Violation {
                member: Some("label".to_owned()),
                rule: "must be normalized or recovered".to_owned(),
            })),
        }
    }
}

impl acceptor::Guest for Component {
    fn accept(value: String, _settings: String) -> Result<String, Failure> {
        let members = value.trim_end_matches('}');
        Ok(format!(r#"{members}, "accepted": true}}"#))
    }
}

impl recoverer::Guest for Component {
    fn recover(
        stored: recoverer::Stored,
        _settings: String,
    ) -> Result<recoverer::Recovered, Failure> {
        if stored.value.contains("secret") {
            return Err(Failure::Other("it was given what is secret".to_owned()));
        }
        Ok(recoverer::Recovered {
            complete: stored.parameters.is_some(),
            parameters: stored
                .parameters
                .unwrap_or_else(|| r#"{"label":"recovered"}"#.to_owned()),
        })
    }
}
