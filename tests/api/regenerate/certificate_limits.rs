//! Set certificates with limits, usages or names that callers cannot request.

use keywright_harness::Server;
use rcgen::{BasicConstraints, DnType, DnValue, GeneralSubtree, IsCa, NameConstraints, SanType};
use serde_json::{Value, json};
use x509_parser::certificate::X509Certificate;

use crate::{certificates::Certificate, keys::with_certificate, made_elsewhere::authority};

/// An RSA CA for 7,300 days, with an unusual order of its subject.
const EXPRESSIBLE: &str = include_str!("../../../plugins/certificate/tests/keys/expressible.pem");

/// An ECDSA CA with every kind of limit; a certificate with an unusual hash; one with usages that do not suit its key;
/// and one whose issuer has the same name and another key type.
const LIMITED: &str = include_str!("../../../plugins/certificate/tests/keys/limited.pem");
const ECDSA_SHA512: &str = include_str!("../../../plugins/certificate/tests/keys/ecdsa_sha512.pem");
const ENCIPHERING: &str = include_str!("../../../plugins/certificate/tests/keys/enciphering.pem");
const OTHER_TYPE: &str = include_str!("../../../plugins/certificate/tests/keys/other_type.pem");

const NAME_CONSTRAINTS: &str = "2.5.29.30";
const KEY_IDENTIFIERS: [&str; 2] = ["2.5.29.14", "2.5.29.35"];

/// The extensions except key identifiers, each with its criticality.
fn extensions(certificate: &X509Certificate<'_>) -> Vec<(String, bool, Vec<u8>)> {
    let mut extensions: Vec<_> = certificate
        .iter_extensions()
        .map(|found| {
            (
                found.oid.to_id_string(),
                found.critical,
                found.value.to_vec(),
            )
        })
        .filter(|(oid, ..)| !KEY_IDENTIFIERS.contains(&oid.as_str()))
        .collect();
    extensions.sort();
    extensions
}

async fn set(server: &Server, name: &str, value: Value) {
    server.set(name, "certificate", value).await.expect(200);
}

#[tokio::test]
async fn extensions_without_a_parameter_are_preserved() {
    let server = Server::start().await;
    for original in [LIMITED, ECDSA_SHA512, ENCIPHERING] {
        set(&server, "/a", json!({"certificate": original})).await;
        for _ in 0..2 {
            let version = server.regenerate("/a").await.expect(200).json();
            let made = version["value"]["certificate"].as_str().unwrap();
            let expected = with_certificate(original, extensions);
            assert_eq!(with_certificate(made, extensions), expected);
            assert_eq!(version["value"]["ca"], version["value"]["certificate"]);
        }
    }
}

#[tokio::test]
async fn a_leaf_of_a_namesake_ca_with_another_key_type_is_400() {
    let server = Server::start().await;
    set(&server, "/a", json!({"certificate": OTHER_TYPE})).await;
    let error = server.regenerate("/a").await.expect(400).error();
    assert!(error.contains("that signed it is unknown"), "{error}");
}

#[tokio::test]
async fn names_that_cannot_be_requested_are_preserved() {
    let server = Server::start().await;
    let root = authority("root");
    let stored = json!({"certificate": root.certificate, "private_key": root.private_key});
    set(&server, "/root", stored).await;
    let leaf = root.sign_leaf_with("leaf", |parameters| {
        parameters.distinguished_name.push(
            DnType::CountryName,
            DnValue::Utf8String("Österreich".to_owned()),
        );
        parameters.subject_alt_names = vec![SanType::Rfc822Name(
            "\"a://b\"@example.com".try_into().unwrap(),
        )];
    });
    let value = json!({"certificate": leaf.certificate, "ca_name": "/root"});
    set(&server, "/leaf", value).await;
    let version = server.regenerate("/leaf").await.expect(200).json();
    let names = |certificate: &X509Certificate<'_>| {
        let alternative_names = certificate.subject_alternative_name().unwrap().unwrap();
        (
            certificate.subject().as_raw().to_vec(),
            format!("{:?}", alternative_names.value),
        )
    };
    let made = version["value"]["certificate"].as_str().unwrap();
    assert_eq!(
        with_certificate(made, names),
        with_certificate(&leaf.certificate, names)
    );
}

#[tokio::test]
async fn intermediates_keep_path_lengths_but_not_name_constraints() {
    let server = Server::start().await;
    let root = authority("root");
    let stored = json!({"certificate": root.certificate, "private_key": root.private_key});
    set(&server, "/root", stored).await;
    let below = |path_length: Option<u8>, constraints: Option<NameConstraints>| {
        root.sign_leaf_with("middle", |parameters| {
            parameters.is_ca = IsCa::Ca(path_length.map_or(
                BasicConstraints::Unconstrained,
                BasicConstraints::Constrained,
            ));
            parameters.name_constraints = constraints;
        })
    };
    for path_length in [None, Some(0), Some(127)] {
        let middle = below(path_length, None);
        let value = json!({"certificate": middle.certificate, "ca_name": "/root"});
        set(&server, "/middle", value).await;
        let version = server.regenerate("/middle").await.expect(200).json();
        let made = version["value"]["certificate"].as_str().unwrap();
        let expected = with_certificate(&middle.certificate, extensions);
        assert_eq!(with_certificate(made, extensions), expected);
    }
    let constraints = NameConstraints {
        permitted_subtrees: vec![GeneralSubtree::DnsName("example.org".to_owned())],
        excluded_subtrees: Vec::new(),
    };
    for (middle, words) in [
        (below(None, Some(constraints)), NAME_CONSTRAINTS),
        (below(Some(128), None), "path length"),
    ] {
        let value = json!({"certificate": middle.certificate, "ca_name": "/root"});
        set(&server, "/middle", value).await;
        let error = server.regenerate("/middle").await.expect(400).error();
        assert!(error.contains(words), "{error}");
    }
}

#[tokio::test]
async fn changing_the_key_length_preserves_unrequestable_contents() {
    let server = Server::start().await;
    let certificate = Certificate::set(&server, "/a", json!({"certificate": EXPRESSIBLE})).await;
    let subject = |certificate: &X509Certificate<'_>| certificate.subject().as_raw().to_vec();
    for key_length in [2048, 3072] {
        let body = json!({"key_length": key_length});
        let version = certificate.regenerate(body).await.expect(200).json();
        assert_eq!(version["key_length"], key_length);
        assert_eq!(version["duration_used"], 7_300);
        let made = version["value"]["certificate"].as_str().unwrap();
        let expected = with_certificate(EXPRESSIBLE, subject);
        assert_eq!(with_certificate(made, subject), expected);
    }
    let body = json!({"duration": 7_300});
    let error = certificate.regenerate(body).await.expect(400).error();
    assert!(error.contains("duration"), "{error}");
}
