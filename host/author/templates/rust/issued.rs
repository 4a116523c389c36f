//! Generates values of the type `sample-token`: an Ed25519 key, with a certificate for a host name that a CA of the server signs.

use std::time::Duration;

use der::{
    Any, DateTime, Decode, Encode, Sequence,
    asn1::{Ia5String, OctetString},
    oid::db::rfc5280::ID_KP_SERVER_AUTH,
    pem::{self, LineEnding},
};
use ed25519_dalek::{
    SigningKey,
    pkcs8::{EncodePrivateKey, EncodePublicKey, KeypairBytes},
};
use exports::keywright::generator::{descriptor, issued_generator, settings_descriptor};
use keywright::{
    generator::{
        notes::note,
        types::{Failure, Violation},
    },
    signing::issuer::{Issuer, SigningError},
};
use serde_json::{Value, json};
use wasi::random::random::get_random_bytes;
use x509_cert::{
    ext::{Extension, ToExtension, pkix, pkix::name::GeneralName},
    name::Name,
    serial_number::SerialNumber,
    time::{Time, Validity},
};

/// Generates a value. EDIT THIS FUNCTION, then the schemas, the settings and the description below.
///
/// `issuer` is the CA that the parameter `ca` names.
fn make_value(
    parameters: &Value,
    settings: &Value,
    now_seconds: u64,
    issuer: &Issuer,
) -> Result<Value, Failure> {
    let host = parameters["common_name"].as_str().unwrap_or_default();
    let domain = settings["domain"].as_str().unwrap_or_default();
    if !host.ends_with(domain) {
        return Err(invalid("common_name", &format!("must end in {domain}")));
    }
    let secret_key = get_random_bytes(32).try_into().unwrap();
    let key = KeypairBytes {
        secret_key,
        public_key: None,
    };
    let key = key.to_pkcs8_pem(LineEnding::LF).map_err(other)?;
    let public_key = SigningKey::from_bytes(&secret_key).verifying_key();
    let public_key = public_key.to_public_key_der().map_err(other)?;
    let days = parameters["duration"].as_u64().unwrap_or_default();
    let validity = [now_seconds, now_seconds + days * 24 * 60 * 60];
    let body = certificate_body(host, validity, public_key.as_bytes(), issuer).map_err(other)?;
    let certificate = issuer
        .sign_certificate(&body)
        .map_err(|error| match error {
            SigningError::Refused(rule) => other(rule),
            SigningError::Other(cause) => other(cause),
        })?;
    Ok(json!({
        "ca": certificate_pem(&issuer.certificate())?,
        "certificate": certificate_pem(&certificate)?,
        "private_key": key.as_str(),
    }))
}

/// The body of a certificate (RFC 5280, section 4.1).
#[derive(Sequence)]
struct TbsCertificate {
    #[asn1(context_specific = "0", tag_mode = "EXPLICIT")]
    version: u8,
    serial_number: SerialNumber,
    signature: Any,
    issuer: Any,
    validity: Validity,
    subject: Name,
    subject_public_key_info: Any,
    #[asn1(context_specific = "3", tag_mode = "EXPLICIT")]
    extensions: Vec<Extension>,
}

/// Encodes the body of a certificate for a TLS server. The host checks it before the CA signs it.
fn certificate_body(
    host: &str,
    [from, until]: [u64; 2],
    public_key: &[u8],
    issuer: &Issuer,
) -> der::Result<Vec<u8>> {
    let time = |seconds| DateTime::from_unix_duration(Duration::from_secs(seconds)).map(Time::from);
    let subject: Name = format!("CN={host}").parse()?;
    let (_, identifier) = public_key.split_at(public_key.len() - 20);
    let mut extensions = vec![
        pkix::SubjectKeyIdentifier(OctetString::new(identifier)?).to_extension(&subject, &[])?,
        pkix::BasicConstraints {
            ca: false,
            path_len_constraint: None,
        }
        .to_extension(&subject, &[])?,
        pkix::KeyUsage(pkix::KeyUsages::DigitalSignature.into()).to_extension(&subject, &[])?,
        pkix::ExtendedKeyUsage(vec![ID_KP_SERVER_AUTH]).to_extension(&subject, &[])?,
        pkix::SubjectAltName(vec![GeneralName::DnsName(Ia5String::new(host)?)])
            .to_extension(&subject, &[])?,
    ];
    if let Some(identifier) = issuer.subject_key_identifier() {
        let authority = pkix::AuthorityKeyIdentifier {
            key_identifier: Some(OctetString::new(identifier)?),
            ..Default::default()
        };
        extensions.push(authority.to_extension(&subject, &[])?);
    }
    let mut serial_number = get_random_bytes(16);
    // Positive, and without leading zeros.
    serial_number[0] = serial_number[0] & 0x3f | 0x40;
    let body = TbsCertificate {
        version: 2,
        serial_number: SerialNumber::new(&serial_number)?,
        signature: Any::from_der(&issuer.signature_algorithm())?,
        issuer: Any::from_der(&issuer.subject())?,
        validity: Validity::new(time(from)?, time(until)?),
        subject,
        subject_public_key_info: Any::from_der(public_key)?,
        extensions,
    };
    body.to_der()
}

fn certificate_pem(der: &[u8]) -> Result<String, Failure> {
    pem::encode_string("CERTIFICATE", LineEnding::LF, der).map_err(other)
}

/// The parameters of a request. The host validates them and fills in the defaults before it calls the plugin. Before it uses the
/// plugin, it generates values with the example, signed by a CA that exists only for tests.
fn parameters_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "ca": {"description": "Name of the CA.", "type": "string"},
            "common_name": {"description": "Host name.", "type": "string", "pattern": "^[a-z0-9-]+([.][a-z0-9-]+)*$", "maxLength": 64},
            "duration": {"description": "Validity in days.", "type": "integer", "minimum": 1, "maximum": 3650, "default": 90}
        },
        "required": ["ca", "common_name"],
        "additionalProperties": false,
        "examples": [{"ca": "/my/ca", "common_name": "app.example.com"}]
    })
}

/// The generated value. Mark secret parts as `writeOnly`.
fn value_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "ca": {"type": "string"},
            "certificate": {"type": "string"},
            "private_key": {"type": "string", "writeOnly": true}
        },
        "required": ["ca", "certificate", "private_key"],
        "additionalProperties": false
    })
}

/// The operator's settings, such as `settings = { domain = ".example.com" }` in the configuration of the plugin. A server refuses a
/// configuration with other settings.
fn settings_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "domain": {"description": "End of all host names.", "type": "string"}
        },
        "additionalProperties": false
    })
}

/// A failure for the caller, with status 400: a parameter breaks a rule. For a field of a value in `accept` and `recover`, use
/// `Failure::InvalidValue` in the same way.
fn invalid(parameter: &str, rule: &str) -> Failure {
    Failure::InvalidParameters(Violation {
        member: Some(parameter.to_owned()),
        rule: rule.to_owned(),
    })
}

/// A failure for the author, which a server only logs. It must not contain a secret. For a setting that the schema can't check, use
/// `Failure::Misconfigured` in the same way.
fn other(cause: impl ToString) -> Failure {
    Failure::Other(cause.to_string())
}

/// Prints panics as notes, which `keywright plugin run` and `keywright plugin test` show. Call this first in each function.
fn note_panics() {
    std::panic::set_hook(Box::new(|panic| panic.to_string().lines().for_each(note)));
}

struct Plugin;

impl descriptor::Guest for Plugin {
    fn describe() -> descriptor::Description {
        note_panics();
        descriptor::Description {
            credential_type: "sample-token".to_owned(),
            plugin_version: env!("CARGO_PKG_VERSION").to_owned(),
            summary: "Keys with certificates".to_owned(),
            parameters_schema: parameters_schema().to_string(),
            value_schema: value_schema().to_string(),
            issuer_parameter: Some("ca".to_owned()),
            // For the example: the 32 bytes of the key.
            entropy_bits_min: Some(256),
        }
    }
}

impl settings_descriptor::Guest for Plugin {
    fn describe_settings() -> String {
        note_panics();
        settings_schema().to_string()
    }
}

impl issued_generator::Guest for Plugin {
    fn generate(
        generation: issued_generator::Generation,
        issuer: Option<&Issuer>,
    ) -> Result<String, Failure> {
        note_panics();
        let settings = serde_json::from_str(&generation.settings).map_err(other)?;
        let parameters = serde_json::from_str(&generation.parameters).map_err(other)?;
        let issuer = issuer.ok_or_else(|| invalid("ca", "must name a CA"))?;
        let value = make_value(&parameters, &settings, generation.now_seconds, issuer)?;
        Ok(value.to_string())
    }
}

wit_bindgen::generate!({path: "wit", world: "plugin", generate_all});
export!(Plugin);
