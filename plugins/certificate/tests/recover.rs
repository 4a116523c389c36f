//! The parameters that a stored certificate tells.
#![expect(clippy::unwrap_used, reason = "a test may fail where it stands")]

mod common;

use common::{Authority, NOW_SECONDS, made};
use keywright_plugin_certificate::{parameters::normalize, recover::recover};
use keywright_plugin_support::Failure;
use serde_json::{Value, json};

/// What the certificate of a value tells, and whether it tells all.
fn told(certificate: &str) -> (Value, bool) {
    let value = json!({"certificate": certificate, "ca": null}).to_string();
    let recovered = recover(None, &value, "{}").unwrap();
    (
        serde_json::from_str(&recovered.parameters).unwrap(),
        recovered.is_complete,
    )
}

fn told_of(value: &Value) -> (Value, bool) {
    told(value["certificate"].as_str().unwrap())
}

#[test]
fn a_generated_certificate_tells_its_canonical_parameters() {
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
    ] {
        let value = made(&parameters, NOW_SECONDS, None, 1).unwrap();
        let canonical = normalize(&parameters.to_string(), "{}").unwrap();
        assert_eq!(
            told_of(&value),
            (serde_json::from_str(&canonical).unwrap(), true)
        );
    }
}

#[test]
fn who_signed_is_for_the_host_to_say() {
    let root = made(
        &json!({"common_name": "root", "is_ca": true}),
        NOW_SECONDS,
        None,
        1,
    )
    .unwrap();
    let parameters = json!({"common_name": "x", "ca": "/root", "is_ca": true});
    let value = made(&parameters, NOW_SECONDS, Some(&Authority::of(&root)), 2).unwrap();
    let mut canonical: Value =
        serde_json::from_str(&normalize(&parameters.to_string(), "{}").unwrap()).unwrap();
    canonical.as_object_mut().unwrap().remove("ca");
    assert_eq!(told_of(&value), (canonical, true));
}

#[test]
fn stored_parameters_are_returned_as_they_are() {
    let stored = normalize(r#"{"common_name":"x","ca":"/ca"}"#, "{}").unwrap();
    let recovered = recover(Some(stored.clone()), r#"{"certificate":null}"#, "{}").unwrap();
    assert_eq!(recovered.parameters, stored);
    assert!(recovered.is_complete);
}

#[test]
fn a_certificate_of_another_program_tells_what_parameters_can_express() {
    assert_eq!(
        told(include_str!("keys/expressible.pem")),
        (
            json!({
                "common_name": "full, example", "organization": "A+B", "locality": "Berlin",
                "alternative_names": ["*.example.com", "2001:db8::1", "10.0.0.1"],
                "key_usage": ["key_cert_sign", "crl_sign"],
                "extended_key_usage": ["client_auth", "server_auth"],
                "key_length": 3072, "duration": 7300, "is_ca": true, "self_sign": true
            }),
            true
        )
    );
}

#[test]
fn what_parameters_can_not_express_makes_the_result_incomplete() {
    assert_eq!(
        told(include_str!("keys/foreign_names.pem")),
        (
            json!({
                "common_name": "foreign", "organization_unit": "one", "alternative_names": ["example.com"],
                "key_length": 2048, "duration": 30, "is_ca": true, "self_sign": true
            }),
            false
        )
    );
    assert_eq!(
        told(include_str!("keys/ecdsa.pem")),
        (
            json!({
                "common_name": "ecdsa", "key_length": 2048, "duration": 30, "is_ca": true, "self_sign": true
            }),
            false
        )
    );
}

#[test]
fn an_issuer_of_the_same_name_does_not_make_a_certificate_sign_itself() {
    let (parameters, is_complete) = told(include_str!("keys/same_name.pem"));
    assert_eq!(parameters["self_sign"], false);
    assert!(is_complete);
}

#[test]
fn a_certificate_that_was_set_can_be_made_anew_for_as_long_as_it_lasted() {
    let (parameters, _) = told(include_str!("keys/expressible.pem"));
    let random = &mut <rand::rngs::ChaCha12Rng as rand::SeedableRng>::seed_from_u64(9);
    let value = keywright_plugin_certificate::generate::generate(
        &parameters.to_string(),
        "{}",
        NOW_SECONDS,
        None::<&Authority>,
        random,
    )
    .unwrap();
    assert_eq!(
        told_of(&serde_json::from_str(&value).unwrap()),
        (parameters, true)
    );
}

#[test]
fn what_is_no_certificate_can_not_be_made_anew() {
    let torn = include_str!("keys/ecdsa.pem").replace("MII", "MIM");
    for certificate in [json!(null), json!(""), json!("no PEM"), json!(torn)] {
        let value = json!({"certificate": certificate, "ca": null}).to_string();
        let Err(Failure::InvalidValue(violation)) = recover(None, &value, "{}") else {
            panic!("{certificate} was taken")
        };
        assert_eq!(violation.member.as_deref(), Some("certificate"));
    }
}
