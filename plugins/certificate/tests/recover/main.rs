//! The parameters recovered from a stored certificate.
#![expect(clippy::unwrap_used, reason = "a panic fails the test")]

#[path = "../common/mod.rs"]
mod common;
mod kept;

use common::{Authority, NOW_SECONDS, der, generated};
use keywright_plugin_certificate::{
    generate::generate, parameters::normalize, pem, recover::recover,
};
use keywright_plugin_support::{Failure, Recovered};
use rand::{SeedableRng, rngs::ChaCha12Rng};
use serde_json::{Value, json};
use x509_parser::prelude::{FromDer, X509Certificate};

/// Returns the parameters recovered from a certificate, and whether they are complete.
pub(crate) fn reported(certificate: &str) -> (Value, bool) {
    let value = json!({"certificate": certificate, "ca": null}).to_string();
    let recovered = recover(None, &value).unwrap();
    (
        serde_json::from_str(&recovered.parameters).unwrap(),
        recovered.is_complete,
    )
}

/// Also returns the names of the kept parts, which no other parameter can express.
pub(crate) fn reported_and_kept(certificate: &str) -> (Value, Vec<String>, bool) {
    let (mut parameters, is_complete) = reported(certificate);
    let kept = parameters.as_object_mut().unwrap().remove("kept");
    let kept = kept.map_or(Vec::new(), |kept| {
        kept.as_object().unwrap().keys().cloned().collect()
    });
    (parameters, kept, is_complete)
}

/// Generates a value with the parameters recovered from a certificate.
pub(crate) fn regenerated(certificate: &str) -> Value {
    let (parameters, _) = reported(certificate);
    let random = &mut ChaCha12Rng::seed_from_u64(9);
    let parameters = parameters.to_string();
    let value = generate(&parameters, "{}", NOW_SECONDS, None::<&Authority>, random).unwrap();
    serde_json::from_str(&value).unwrap()
}

/// Returns the criticality and the value of an extension.
pub(crate) fn extension(der: &[u8], identifier: &str) -> Option<(bool, Vec<u8>)> {
    let (_, certificate) = X509Certificate::from_der(der).unwrap();
    certificate
        .iter_extensions()
        .find(|extension| extension.oid.to_id_string() == identifier)
        .map(|extension| (extension.critical, extension.value.to_vec()))
}

fn reported_of(value: &Value) -> (Value, bool) {
    reported(value["certificate"].as_str().unwrap())
}

#[test]
fn generated_certificate_yields_its_canonical_parameters() {
    for parameters in [
        json!({"common_name": "x", "is_ca": true}),
        json!({"locality": "M\u{fc}nchen, #1", "self_sign": true, "duration": 1}),
        json!({
            "common_name": "full", "organization": "o", "organization_unit": "u", "country": "DE",
            "state": "s", "locality": "l", "self_sign": true, "is_ca": true, "duration": 3650,
            "key_length": 3072, "alternative_names": ["b.example", "10.0.0.1", "::1", "a.example"],
            "key_usage": ["crl_sign", "key_cert_sign", "decipher_only"],
            "extended_key_usage": ["server_auth", "client_auth"]
        }),
        json!({"common_name": "x", "is_ca": true, "key_type": "ecdsa-p256"}),
        json!({"common_name": "x", "is_ca": true, "key_type": "ecdsa-p384"}),
        json!({
            "common_name": "x", "self_sign": true, "key_type": "ed25519",
            "alternative_names": ["spiffe://example.org/x", "ada@example.org", "x.example"]
        }),
    ] {
        let value = generated(&parameters, NOW_SECONDS, None, 1).unwrap();
        let canonical = normalize(&parameters.to_string(), "{}").unwrap();
        assert_eq!(
            reported_of(&value),
            (serde_json::from_str(&canonical).unwrap(), true)
        );
    }
}

#[test]
fn recovered_parameters_do_not_name_the_ca() {
    let root = generated(
        &json!({"common_name": "root", "is_ca": true}),
        NOW_SECONDS,
        None,
        1,
    )
    .unwrap();
    let parameters = json!({"common_name": "x", "ca": "/root", "is_ca": true});
    let value = generated(&parameters, NOW_SECONDS, Some(&Authority::of(&root)), 2).unwrap();
    let mut canonical: Value =
        serde_json::from_str(&normalize(&parameters.to_string(), "{}").unwrap()).unwrap();
    canonical.as_object_mut().unwrap().remove("ca");
    assert_eq!(reported_of(&value), (canonical, true));
}

#[test]
fn stored_parameters_are_returned_unchanged() {
    let stored = normalize(r#"{"common_name":"x","ca":"/ca"}"#, "{}").unwrap();
    let recovered = recover(Some(stored.clone()), r#"{"certificate":null}"#).unwrap();
    assert_eq!(recovered.parameters, stored);
    assert!(recovered.is_complete);
}

#[test]
fn foreign_certificate_yields_expressible_parameters() {
    assert_eq!(
        reported_and_kept(include_str!("../keys/expressible.pem")),
        (
            json!({
                "common_name": "full, example", "organization": "A+B", "locality": "Berlin",
                "alternative_names": ["*.example.com", "2001:db8::1", "10.0.0.1"],
                "key_usage": ["key_cert_sign", "crl_sign"],
                "extended_key_usage": ["client_auth", "server_auth"],
                "key_length": 3072, "duration": 7300, "is_ca": true, "self_sign": true
            }),
            vec!["subject".to_owned()],
            true
        ),
        "its subject has another order"
    );
}

#[test]
fn inexpressible_parts_are_kept_and_incomplete() {
    assert_eq!(
        reported_and_kept(include_str!("../keys/foreign_names.pem")),
        (
            json!({
                "common_name": "foreign", "organization_unit": "one",
                "alternative_names": ["ada@example.com", "example.com", "spiffe://example.com/ada"],
                "key_length": 2048, "duration": 30, "is_ca": true, "self_sign": true
            }),
            vec!["subject".to_owned()],
            false
        )
    );
    assert_eq!(
        reported_and_kept(include_str!("../keys/kept.pem")),
        (
            json!({
                "common_name": "#kept \"quoted\"", "organization": "A, B + C", "country": "AT",
                "alternative_names": ["b.example", "ada@example.com", "spiffe://example.org/ada", "10.0.0.1"],
                "key_usage": ["digital_signature", "key_agreement"],
                "extended_key_usage": ["server_auth", "client_auth"],
                "key_type": "ecdsa-p384", "duration": 5000, "is_ca": false, "self_sign": true
            }),
            ["subject", "alternative_names", "extended_key_usage"]
                .map(str::to_owned)
                .to_vec(),
            false
        )
    );
}

#[test]
fn kept_parts_survive_repeated_regeneration() {
    for original in [
        include_str!("../keys/kept.pem"),
        include_str!("../keys/foreign_names.pem"),
        include_str!("../keys/expressible.pem"),
    ] {
        let original_der = pem::first_certificate(original).unwrap();
        let (_, before) = X509Certificate::from_der(&original_der).unwrap();
        let once = regenerated(original);
        let twice = regenerated(once["certificate"].as_str().unwrap());
        for value in [once, twice] {
            let renewed = der(&value, "certificate");
            let (_, after) = X509Certificate::from_der(&renewed).unwrap();
            after.verify_signature(None).unwrap();
            assert_eq!(after.subject().as_raw(), before.subject().as_raw());
            assert_eq!(after.issuer().as_raw(), before.subject().as_raw());
            for identifier in ["2.5.29.15", "2.5.29.17", "2.5.29.19", "2.5.29.37"] {
                assert_eq!(
                    extension(&renewed, identifier),
                    extension(&original_der, identifier),
                    "{identifier}"
                );
            }
            assert_eq!(
                after.public_key().algorithm,
                before.public_key().algorithm,
                "the type of the key"
            );
            assert_eq!(reported_of(&value), reported(original));
        }
    }
}

#[test]
fn recovered_parameters_are_canonical() {
    for certificate in [
        include_str!("../keys/foreign_names.pem"),
        include_str!("../keys/reordered.pem"),
        include_str!("../keys/ed25519.pem"),
    ] {
        let (reported, _) = reported(certificate);
        let canonical: Value =
            serde_json::from_str(&normalize(&reported.to_string(), "{}").unwrap()).unwrap();
        assert_eq!(canonical, reported);
    }
}

#[test]
fn stored_parameters_are_complete_if_only_encodings_are_kept() {
    for (certificate, expected) in [
        (include_str!("../keys/expressible.pem"), true),
        (include_str!("../keys/kept.pem"), false),
        (include_str!("../keys/foreign_names.pem"), false),
        (include_str!("../keys/ed25519.pem"), true),
    ] {
        let (parameters, _) = reported(certificate);
        let stored = parameters.to_string();
        let recovered = recover(Some(stored.clone()), r#"{"certificate":null}"#).unwrap();
        assert_eq!(
            recovered,
            Recovered {
                parameters: stored,
                is_complete: expected
            }
        );
    }
}

#[test]
fn key_types_are_recovered() {
    for (certificate, parameter, expected, is_complete) in [
        (
            include_str!("../keys/ecdsa.pem"),
            "key_type",
            json!("ecdsa-p256"),
            true,
        ),
        (
            include_str!("../keys/kept.pem"),
            "key_type",
            json!("ecdsa-p384"),
            false,
        ),
        (
            include_str!("../keys/ed25519.pem"),
            "key_type",
            json!("ed25519"),
            true,
        ),
        (
            include_str!("../keys/rsa_1024.pem"),
            "key_length",
            json!(2048),
            false,
        ),
        (
            include_str!("../keys/rsa_2560.pem"),
            "key_length",
            json!(3072),
            false,
        ),
    ] {
        let (parameters, reported_all) = reported(certificate);
        assert_eq!(parameters[parameter], expected);
        assert_eq!(reported_all, is_complete, "{expected}");
    }
}

#[test]
fn the_error_for_an_unsupported_key_type_names_it() {
    for (certificate, words) in [
        (include_str!("../keys/p521.pem"), "type ecdsa-p521"),
        (include_str!("../keys/secp256k1.pem"), "curve 1.3.132.0.10"),
        (include_str!("../keys/rsa_pss.pem"), "type rsassa-pss"),
        (
            include_str!("../keys/rsa_5120.pem"),
            "an RSA key of 5120 bits",
        ),
    ] {
        let value = json!({"certificate": certificate, "ca": null}).to_string();
        let Err(Failure::InvalidValue(violation)) = recover(None, &value) else {
            panic!("{words} was accepted")
        };
        assert_eq!(violation.field.as_deref(), Some("certificate"));
        assert!(violation.rule.contains(words), "{}", violation.rule);
    }
}

#[test]
fn issuer_with_the_same_name_is_not_self_signed() {
    let (parameters, is_complete) = reported(include_str!("../keys/same_name.pem"));
    assert_eq!(parameters["self_sign"], false);
    assert!(is_complete);
}

#[test]
fn set_certificate_keeps_its_duration() {
    let original = include_str!("../keys/expressible.pem");
    let value = regenerated(original);
    assert_eq!(reported_of(&value), reported(original));
    assert_eq!(reported_of(&value).0["duration"], 7300);
}

#[test]
fn malformed_certificate_cannot_be_regenerated() {
    let torn = include_str!("../keys/ecdsa.pem").replace("MII", "MIM");
    for certificate in [json!(null), json!(""), json!("no PEM"), json!(torn)] {
        let value = json!({"certificate": certificate, "ca": null}).to_string();
        let Err(Failure::InvalidValue(violation)) = recover(None, &value) else {
            panic!("{certificate} was accepted")
        };
        assert_eq!(violation.field.as_deref(), Some("certificate"));
    }
}
