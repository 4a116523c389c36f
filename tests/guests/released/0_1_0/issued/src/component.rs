//! The whole plugin, for whatever version it is built.

use crate::bindings::{
    exports::keywright::generator::{descriptor, issued_generator},
    keywright::{
        generator::types::Failure,
        signing::issuer::{Issuer, SigningError},
    },
    wasi::random::random::get_random_bytes,
};

pub(crate) struct Component;

impl descriptor::Guest for Component {
    fn describe() -> descriptor::Description {
        descriptor::Description {
            credential_type: crate::CREDENTIAL_TYPE.to_owned(),
            plugin_version: "1.0.0".to_owned(),
            summary: "Says what it was told of its issuer, and has a body signed.".to_owned(),
            parameters_schema: r#"{
                "type": "object",
                "properties": {
                    "ca": {"type": "string"},
                    "duration": {"type": "integer"},
                    "tbs_certificate": {"type": "string"}
                },
                "additionalProperties": false
            }"#
            .to_owned(),
            value_schema: r#"{
                "type": "object",
                "properties": {
                    "issuer": {"type": "object"},
                    "secret": {"type": "string", "writeOnly": true},
                    "signed": {"type": "string"}
                },
                "required": ["secret"],
                "additionalProperties": false
            }"#
            .to_owned(),
            issuer_parameter: Some("ca".to_owned()),
            entropy_bits_min: Some(128),
        }
    }
}

impl issued_generator::Guest for Component {
    fn generate(
        generation: issued_generator::Generation,
        issuer: Option<&Issuer>,
    ) -> Result<String, Failure> {
        let secret = hexadecimal(&get_random_bytes(16));
        let Some(issuer) = issuer else {
            return Ok(format!(r#"{{"secret": "{secret}"}}"#));
        };
        let signed = match issuer.sign_certificate(&tbs_certificate(&generation.parameters)) {
            Ok(certificate) => hexadecimal(&certificate),
            Err(SigningError::Refused(rule)) => format!("refused: {rule}"),
            Err(SigningError::Other(text)) => format!("failed: {text}"),
        };
        Ok(format!(
            r#"{{
                "issuer": {{
                    "certificate": "{}",
                    "signature_algorithm": "{}",
                    "subject": "{}",
                    "subject_key_identifier": "{}"
                }},
                "secret": "{secret}",
                "signed": "{signed}"
            }}"#,
            hexadecimal(&issuer.certificate()),
            hexadecimal(&issuer.signature_algorithm()),
            hexadecimal(&issuer.subject()),
            hexadecimal(&issuer.subject_key_identifier().unwrap_or_default()),
        ))
    }
}

/// The bytes of the parameter of this name, which stands there in hexadecimal.
fn tbs_certificate(parameters: &str) -> Vec<u8> {
    let (_, value) = parameters
        .split_once(r#""tbs_certificate":""#)
        .unwrap_or_default();
    let (digits, _) = value.split_once('"').unwrap_or_default();
    digits
        .as_bytes()
        .chunks(2)
        .filter_map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok())
        .collect()
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
