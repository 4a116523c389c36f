//! The parameters recovered from a stored certificate, the parts that no parameter can express, and the parts that prevent its
//! regeneration.

use base64ct::{Base64, Encoding};
use der::{Encode, Tag, asn1::Any};
use keywright_der::element;
use keywright_plugin_certificate::{
    generate::generate,
    parameters::{Parameters, normalize},
    pem,
    recover::recover,
    tbs::{self, Circumstances},
};
use keywright_plugin_support::{Failure, Recovered, Violation};
use rand::{SeedableRng, rngs::ChaCha12Rng};
use serde_json::{Value, json};
use x509_parser::prelude::{FromDer, X509Certificate};

use crate::{NOW_SECONDS, der, foreign, generated};

/// Returns the parameters recovered from a certificate, and whether they are complete.
fn reported(certificate: &str) -> (Value, bool) {
    let value = json!({"certificate": certificate, "ca": null}).to_string();
    let recovered = recover(None, &value).unwrap();
    (
        serde_json::from_str(&recovered.parameters).unwrap(),
        recovered.is_complete,
    )
}

/// Also returns the names of the kept parts, which no other parameter can express.
fn reported_and_kept(certificate: &str) -> (Value, Vec<String>, bool) {
    let (mut parameters, is_complete) = reported(certificate);
    let kept = parameters.as_object_mut().unwrap().remove("kept");
    let kept = kept.map_or(Vec::new(), |kept| {
        kept.as_object().unwrap().keys().cloned().collect()
    });
    (parameters, kept, is_complete)
}

/// Generates a value with the parameters recovered from a certificate.
fn regenerated(certificate: &str) -> Value {
    let (parameters, _) = reported(certificate);
    let random = &mut ChaCha12Rng::seed_from_u64(9);
    let parameters = parameters.to_string();
    let value = generate(&parameters, "{}", NOW_SECONDS, None, random).unwrap();
    serde_json::from_str(&value).unwrap()
}

/// Returns the criticality and the value of an extension.
fn extension(der: &[u8], identifier: &str) -> Option<(bool, Vec<u8>)> {
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
fn foreign_certificate_yields_expressible_parameters() {
    assert_eq!(
        reported_and_kept(&foreign("expressible")),
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
        reported_and_kept(&foreign("foreign_names")),
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
        reported_and_kept(&foreign("kept")),
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
fn recovered_parameters_are_canonical() {
    for certificate in ["foreign_names", "reordered", "ed25519", "enciphering"] {
        let (reported, _) = reported(&foreign(certificate));
        let canonical = normalize(&reported.to_string(), "{}").unwrap();
        let canonical: Value = serde_json::from_str(&canonical).unwrap();
        assert_eq!(canonical, reported, "{certificate}");
    }
}

#[test]
fn unsuitable_usages_and_limits_are_recovered() {
    let (parameters, _) = reported(&foreign("enciphering"));
    let usages = json!(["digital_signature", "key_encipherment"]);
    assert_eq!(parameters["key_usage"], usages);
    let (_, kept, _) = reported_and_kept(&foreign("limited"));
    assert_eq!(kept, ["key_usage", "path_length", "limits"]);
}

#[test]
fn stored_parameters_are_complete_if_only_encodings_are_kept() {
    for (certificate, is_complete) in [
        ("expressible", true),
        ("kept", false),
        ("foreign_names", false),
        ("ed25519", true),
        ("limited", true),
    ] {
        let (parameters, _) = reported(&foreign(certificate));
        let parameters = parameters.to_string();
        let recovered = recover(Some(parameters.clone()), r#"{"certificate":null}"#);
        let expected = Recovered {
            parameters,
            is_complete,
        };
        assert_eq!(recovered.unwrap(), expected, "{certificate}");
    }
}

#[test]
fn key_types_are_recovered() {
    for (certificate, parameter, expected, is_expected_complete) in [
        ("ecdsa", "key_type", json!("ecdsa-p256"), true),
        ("kept", "key_type", json!("ecdsa-p384"), false),
        ("ed25519", "key_type", json!("ed25519"), true),
        ("rsa_1024", "key_length", json!(2048), false),
        ("rsa_2560", "key_length", json!(3072), false),
    ] {
        let (parameters, is_complete) = reported(&foreign(certificate));
        assert_eq!(parameters[parameter], expected, "{certificate}");
        assert_eq!(is_complete, is_expected_complete, "{certificate}");
    }
}

#[test]
fn malformed_certificate_cannot_be_regenerated() {
    let torn = foreign("ecdsa").replace("MII", "MIM");
    for certificate in [json!(null), json!(""), json!("no PEM"), json!(torn)] {
        assert_eq!(refused(&certificate).field.as_deref(), Some("certificate"));
    }
}

// Parts without a parameter.

/// Returns an attribute of X.520, by the last number of its identifier.
fn attribute(number: u8, tag: u8, text: &[u8]) -> Vec<u8> {
    let identifier = element(0x06, &[0x55, 0x04, number]);
    element(0x30, &[identifier, element(tag, text)].concat())
}

/// Generates a self-signed certificate like another program, with this DER subject and these alternative names.
fn of_another_program(subject: &[u8], alternative_names: Option<&[u8]>) -> Value {
    let mut kept = json!({"subject": Base64::encode_string(subject)});
    if let Some(names) = alternative_names {
        let identifier = element(0x06, &[0x55, 0x1d, 0x11]);
        let value = element(0x04, &element(0x30, names));
        let extension = element(0x30, &[identifier, value].concat());
        kept["alternative_names"] = json!(Base64::encode_string(&extension));
    }
    let parameters = json!({
        "key_type": "ecdsa-p256", "duration": 30, "is_ca": false, "self_sign": true, "kept": kept,
    });
    let random = &mut ChaCha12Rng::seed_from_u64(3);
    let issuer = None;
    let value = generate(&parameters.to_string(), "{}", NOW_SECONDS, issuer, random);
    serde_json::from_str(&value.unwrap()).unwrap()
}

fn refused(certificate: &Value) -> Violation {
    let value = json!({"certificate": certificate, "ca": null}).to_string();
    match recover(None, &value) {
        Err(Failure::InvalidValue(violation)) => violation,
        other => panic!("{certificate}: {other:?}"),
    }
}

const UTF8: u8 = 0x0c;
const PRINTABLE: u8 = 0x13;
const COMMON_NAME: u8 = 3;
const COUNTRY: u8 = 6;
const ORGANIZATION: u8 = 10;

#[test]
fn subject_with_invalid_text_is_kept() {
    let long = "ü".repeat(33);
    for (number, tag, text) in [
        (COUNTRY, UTF8, "Österreich"),
        (COUNTRY, UTF8, "Ö"),
        (COUNTRY, PRINTABLE, "AUT"),
        (ORGANIZATION, UTF8, "a\u{7}b"),
        (ORGANIZATION, UTF8, &"a".repeat(65)),
        (COUNTRY, UTF8, &long),
    ] {
        let odd = element(0x31, &attribute(number, tag, text.as_bytes()));
        let plain = element(0x31, &attribute(COMMON_NAME, UTF8, b"x"));
        let subject = element(0x30, &[odd, plain].concat());
        let original = of_another_program(&subject, None);
        let certificate = original["certificate"].as_str().unwrap();
        let (parameters, kept, is_complete) = reported_and_kept(certificate);
        assert_eq!(
            parameters,
            json!({
                "common_name": "x", "key_type": "ecdsa-p256", "duration": 30, "is_ca": false,
                "self_sign": true,
            }),
            "{text}"
        );
        assert_eq!((kept, is_complete), (vec!["subject".to_owned()], false));
        let (parameters, _) = reported(certificate);
        normalize(&parameters.to_string(), "{}").unwrap();
        let renewed = der(&regenerated(certificate), "certificate");
        let (_, renewed) = X509Certificate::from_der(&renewed).unwrap();
        assert_eq!(renewed.subject().as_raw(), subject);
    }
}

#[test]
fn ambiguous_alternative_name_is_kept() {
    for (name, is_recovered) in [
        (element(0x81, b"ada@example.com"), true),
        (element(0x81, b"\"a://b\"@example.com"), false),
        (element(0x86, b"https://example.com/"), true),
        (element(0x86, b"urn:a:b"), false),
        (element(0x82, b"10.0.0.1"), false),
        (element(0x82, b"a@example.com"), false),
        (element(0x87, &[10, 0, 0, 1]), true),
        (element(0x87, &[10, 0, 0]), false),
    ] {
        let subject = element(0x30, &element(0x31, &attribute(COMMON_NAME, UTF8, b"x")));
        let original = of_another_program(&subject, Some(&name));
        let certificate = original["certificate"].as_str().unwrap();
        let (parameters, kept, is_complete) = reported_and_kept(certificate);
        assert_eq!(parameters.get("alternative_names").is_some(), is_recovered);
        assert_eq!((kept.is_empty(), is_complete), (is_recovered, is_recovered));
        let renewed = der(&regenerated(certificate), "certificate");
        let names = "2.5.29.17";
        assert_eq!(
            extension(&renewed, names),
            extension(&der(&original, "certificate"), names)
        );
    }
}

#[test]
fn subject_with_unsorted_sets_is_kept_byte_for_byte() {
    let last = attribute(ORGANIZATION, UTF8, b"o");
    let first = attribute(COMMON_NAME, UTF8, b"x");
    let subject = element(0x30, &element(0x31, &[last, first].concat()));
    let original = of_another_program(&subject, None);
    let once = regenerated(original["certificate"].as_str().unwrap());
    let twice = regenerated(once["certificate"].as_str().unwrap());
    for value in [original, once, twice] {
        let renewed = der(&value, "certificate");
        let (_, renewed) = X509Certificate::from_der(&renewed).unwrap();
        assert_eq!(renewed.subject().as_raw(), subject);
        assert_eq!(renewed.issuer().as_raw(), subject);
    }
}

#[test]
fn empty_subject_is_kept() {
    let original = of_another_program(&element(0x30, &[]), None);
    let (parameters, _) = reported(original["certificate"].as_str().unwrap());
    let canonical = normalize(&parameters.to_string(), "{}").unwrap();
    assert_eq!(
        serde_json::from_str::<Value>(&canonical).unwrap(),
        parameters
    );
}

#[test]
fn unknown_critical_extension_is_rejected() {
    let violation = refused(&json!(foreign("unknown_critical")));
    assert_eq!(violation.field.as_deref(), Some("certificate"));
    let words = "critical extension 1.2.3.5";
    assert!(violation.rule.contains(words), "{}", violation.rule);
}

#[test]
fn self_signed_certificate_is_recognized_by_its_signature() {
    for (certificate, expected) in [
        ("ecdsa_sha512", true),
        ("signed_with_pss", true),
        ("signed_with_pss_sha1", true),
        ("signed_with_pss_sha224", true),
        ("signed_with_sha1_of_oiw", true),
        ("rsa_512", true),
        ("other_type", false),
        ("same_name", false),
    ] {
        let (parameters, _) = reported(&foreign(certificate));
        assert_eq!(parameters["self_sign"], expected, "{certificate}");
    }
    let (_, is_complete) = reported(&foreign("same_name"));
    assert!(is_complete);
}

#[test]
fn oversized_rsa_key_is_rejected_with_its_length() {
    for bits in [4_097_usize, 8_193, 16_384] {
        let mut modulus = vec![0xff; bits.div_ceil(8)];
        modulus[0] = 0xff >> ((8 - bits % 8) % 8);
        let modulus = Any::new(Tag::Integer, [&[0][..], &modulus].concat());
        let modulus = match bits % 8 {
            0 => modulus,
            _ => Any::new(Tag::Integer, modulus.unwrap().value()[1..].to_vec()),
        };
        let numbers = [modulus.unwrap().to_der().unwrap(), vec![2, 3, 1, 0, 1]].concat();
        let public_key = Any::new(Tag::Sequence, numbers).unwrap().to_der().unwrap();
        let circumstances = Circumstances {
            public_key: &public_key,
            serial_number: [1; 20],
            now_seconds: NOW_SECONDS,
        };
        let parameters = Parameters::parse(r#"{"common_name":"x","is_ca":true}"#).unwrap();
        let body = tbs::tbs_certificate(&parameters, circumstances, None).unwrap();
        let certificate = tbs::certificate(&body, &[0]).unwrap();
        let violation = refused(&json!(pem::encode(&certificate).unwrap()));
        let words = format!("an RSA key of {bits} bits, but only keys of up to 4096 bits");
        assert!(violation.rule.contains(&words), "{}", violation.rule);
    }
}
