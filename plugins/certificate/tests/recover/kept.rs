//! The parts of a certificate that no parameter can express, and the parts that prevent its regeneration.
#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a panic fails the test"
)]

use base64ct::{Base64, Encoding};
use der::{Encode, Tag, asn1::Any};
use keywright_plugin_certificate::{
    generate::generate,
    parameters::{Parameters, normalize},
    pem,
    recover::recover,
    tbs::{self, Circumstances},
};
use keywright_plugin_support::{Failure, Violation};
use rand::{SeedableRng, rngs::ChaCha12Rng};
use serde_json::{Value, json};
use x509_parser::prelude::{FromDer, X509Certificate};

use crate::{
    common::{self, Authority, NOW_SECONDS},
    extension, regenerated, reported, reported_and_kept,
};

/// Returns an element of DER of up to 127 bytes.
fn element(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
    let content = parts.concat();
    let length = u8::try_from(content.len()).unwrap();
    assert!(length < 0x80);
    [&[tag, length][..], &content].concat()
}

/// Returns an attribute of X.520, by the last number of its identifier.
fn attribute(number: u8, tag: u8, text: &[u8]) -> Vec<u8> {
    let identifier = element(0x06, &[&[0x55, 0x04, number]]);
    element(0x30, &[&identifier, &element(tag, &[text])])
}

/// Generates a self-signed certificate like another program, with this DER subject and these alternative names.
fn of_another_program(subject: &[u8], alternative_names: Option<&[u8]>) -> Value {
    let mut kept = json!({"subject": Base64::encode_string(subject)});
    if let Some(names) = alternative_names {
        let identifier = element(0x06, &[&[0x55, 0x1d, 0x11]]);
        let value = element(0x04, &[&element(0x30, &[names])]);
        let extension = element(0x30, &[&identifier, &value]);
        kept["alternative_names"] = json!(Base64::encode_string(&extension));
    }
    let parameters = json!({
        "key_type": "ecdsa-p256", "duration": 30, "is_ca": false, "self_sign": true, "kept": kept,
    });
    let random = &mut ChaCha12Rng::seed_from_u64(3);
    let issuer = None::<&Authority>;
    let value = generate(&parameters.to_string(), "{}", NOW_SECONDS, issuer, random);
    serde_json::from_str(&value.unwrap()).unwrap()
}

fn refused(certificate: &str) -> Violation {
    let value = json!({"certificate": certificate, "ca": null}).to_string();
    match recover(None, &value) {
        Err(Failure::InvalidValue(violation)) => violation,
        other => panic!("{other:?}"),
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
        let odd = element(0x31, &[&attribute(number, tag, text.as_bytes())]);
        let plain = element(0x31, &[&attribute(COMMON_NAME, UTF8, b"x")]);
        let subject = long_sequence(&[odd, plain].concat());
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
        let renewed = common::der(&regenerated(certificate), "certificate");
        let (_, renewed) = X509Certificate::from_der(&renewed).unwrap();
        assert_eq!(renewed.subject().as_raw(), subject);
    }
}

/// Returns a sequence of 128 to 255 bytes, or fewer.
fn long_sequence(content: &[u8]) -> Vec<u8> {
    let length = u8::try_from(content.len()).unwrap();
    let head = if length < 0x80 {
        vec![0x30, length]
    } else {
        vec![0x30, 0x81, length]
    };
    [head, content.to_vec()].concat()
}

#[test]
fn ambiguous_alternative_name_is_kept() {
    for (name, is_recovered) in [
        (element(0x81, &[b"ada@example.com"]), true),
        (element(0x81, &[b"\"a://b\"@example.com"]), false),
        (element(0x86, &[b"https://example.com/"]), true),
        (element(0x86, &[b"urn:a:b"]), false),
        (element(0x82, &[b"10.0.0.1"]), false),
        (element(0x82, &[b"a@example.com"]), false),
        (element(0x87, &[&[10, 0, 0, 1]]), true),
        (element(0x87, &[&[10, 0, 0]]), false),
    ] {
        let subject = element(
            0x30,
            &[&element(0x31, &[&attribute(COMMON_NAME, UTF8, b"x")])],
        );
        let original = of_another_program(&subject, Some(&name));
        let certificate = original["certificate"].as_str().unwrap();
        let (parameters, kept, is_complete) = reported_and_kept(certificate);
        assert_eq!(parameters.get("alternative_names").is_some(), is_recovered);
        assert_eq!((kept.is_empty(), is_complete), (is_recovered, is_recovered));
        let renewed = common::der(&regenerated(certificate), "certificate");
        let names = "2.5.29.17";
        assert_eq!(
            extension(&renewed, names),
            extension(&common::der(&original, "certificate"), names)
        );
    }
}

#[test]
fn subject_with_unsorted_sets_is_kept_byte_for_byte() {
    let last = attribute(ORGANIZATION, UTF8, b"o");
    let first = attribute(COMMON_NAME, UTF8, b"x");
    let subject = element(0x30, &[&element(0x31, &[&last, &first])]);
    let original = of_another_program(&subject, None);
    let once = regenerated(original["certificate"].as_str().unwrap());
    let twice = regenerated(once["certificate"].as_str().unwrap());
    for value in [original, once, twice] {
        let renewed = common::der(&value, "certificate");
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
fn constraints_of_a_ca_survive_regeneration() {
    let original = include_str!("../keys/limited.pem");
    let (_, kept, is_complete) = reported_and_kept(original);
    assert_eq!(kept, ["key_usage", "path_length", "limits"]);
    assert!(is_complete, "no parameter is about limits");
    let original_der = pem::first_certificate(original).unwrap();
    let once = regenerated(original);
    let twice = regenerated(once["certificate"].as_str().unwrap());
    for value in [once, twice] {
        let renewed = common::der(&value, "certificate");
        for identifier in [
            "2.5.29.15",
            "2.5.29.19",
            "2.5.29.30",
            "2.5.29.32",
            "2.5.29.36",
            "2.5.29.54",
        ] {
            let limit = extension(&original_der, identifier);
            assert!(limit.is_some());
            assert_eq!(extension(&renewed, identifier), limit, "{identifier}");
        }
    }
}

#[test]
fn unknown_critical_extension_is_rejected() {
    let violation = refused(include_str!("../keys/unknown_critical.pem"));
    assert_eq!(violation.field.as_deref(), Some("certificate"));
    assert!(
        violation.rule.contains("critical extension 1.2.3.5"),
        "{}",
        violation.rule
    );
}

#[test]
fn unsuitable_key_usage_is_kept() {
    let (parameters, _) = reported(include_str!("../keys/enciphering.pem"));
    assert_eq!(
        parameters["key_usage"],
        json!(["digital_signature", "key_encipherment"])
    );
    let canonical = normalize(&parameters.to_string(), "{}").unwrap();
    assert_eq!(
        serde_json::from_str::<Value>(&canonical).unwrap(),
        parameters
    );
    let original = include_str!("../keys/enciphering.pem");
    let original_der = pem::first_certificate(original).unwrap();
    let renewed = common::der(&regenerated(original), "certificate");
    assert_eq!(
        extension(&renewed, "2.5.29.15"),
        extension(&original_der, "2.5.29.15")
    );
}

#[test]
fn self_signed_certificate_is_recognized_by_its_signature() {
    for (certificate, expected) in [
        (include_str!("../keys/ecdsa_sha512.pem"), true),
        (include_str!("../keys/signed_with_pss.pem"), true),
        (include_str!("../keys/rsa_512.pem"), true),
        (include_str!("../keys/other_type.pem"), false),
        (include_str!("../keys/same_name.pem"), false),
    ] {
        let (parameters, _) = reported(certificate);
        assert_eq!(parameters["self_sign"], expected, "{certificate}");
    }
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
        let body = tbs::tbs_certificate(&parameters, circumstances, None::<&Authority>).unwrap();
        let certificate = tbs::certificate(&body, &[0]).unwrap();
        let violation = refused(&pem::encode(&certificate).unwrap());
        let words = format!("an RSA key of {bits} bits, but only keys of up to 4096 bits");
        assert!(violation.rule.contains(&words), "{}", violation.rule);
    }
}
