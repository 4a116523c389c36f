//! Regenerating set certificates preserves contents that parameters can't express.

use keywright_harness::Server;
use rcgen::{
    BasicConstraints, CustomExtension, DnType, DnValue, ExtendedKeyUsagePurpose, GeneralSubtree,
    IsCa, NameConstraints, PKCS_ECDSA_P384_SHA384, SanType,
};
use serde_json::json;
use x509_parser::certificate::X509Certificate;

use crate::{
    certificates::Certificate,
    external_certificates::{Signing, authority, authority_encoded_differently, authority_with},
    keys::{certificate_days, with_certificate},
};

/// A certificate with every kind of subject field, name and purpose.
const KEPT: &str = include_str!("../../../plugins/certificate/tests/keys/kept.pem");
const EXPRESSIBLE: &str = include_str!("../../../plugins/certificate/tests/keys/expressible.pem");
const FOREIGN: &str = include_str!("../../../plugins/certificate/tests/keys/foreign_names.pem");
const REORDERED: &str = include_str!("../../../plugins/certificate/tests/keys/reordered.pem");
const ED25519: &str = include_str!("../../../plugins/certificate/tests/keys/ed25519.pem");
const P521: &str = include_str!("../../../plugins/certificate/tests/keys/p521.pem");
const SECP256K1: &str = include_str!("../../../plugins/certificate/tests/keys/secp256k1.pem");
const RSA_PSS: &str = include_str!("../../../plugins/certificate/tests/keys/rsa_pss.pem");
const RSA_1024: &str = include_str!("../../../plugins/certificate/tests/keys/rsa_1024.pem");
const RSA_2560: &str = include_str!("../../../plugins/certificate/tests/keys/rsa_2560.pem");
const RSA_5120: &str = include_str!("../../../plugins/certificate/tests/keys/rsa_5120.pem");

const KEY_IDENTIFIERS: [&str; 2] = ["2.5.29.14", "2.5.29.35"];

/// Returns the extensions except key identifiers, each with its criticality.
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

/// The subject, the extensions, and the seconds of validity.
type KeptParts = (Vec<u8>, Vec<(String, bool, Vec<u8>)>, i64);

/// Returns the parts that must be preserved byte for byte, and the duration.
fn kept_parts(certificate: &X509Certificate<'_>) -> KeptParts {
    let validity = certificate.validity();
    (
        certificate.subject().as_raw().to_vec(),
        extensions(certificate),
        validity.not_after.timestamp() - validity.not_before.timestamp(),
    )
}

#[tokio::test]
async fn a_self_signed_certificate_keeps_its_contents() {
    let server = Server::reused().await;
    let expressible = [KEPT, EXPRESSIBLE, FOREIGN, REORDERED];
    let root = authority_encoded_differently("root").certificate;
    let others = [ED25519, LIMITED, ECDSA_SHA512, ENCIPHERING, &root];
    for original in expressible.into_iter().chain(others) {
        server
            .stored("/a", "certificate", json!({"certificate": original}))
            .await;
        for _ in 0..2 {
            let version = server.regenerated("/a").await;
            let made = version["value"]["certificate"].as_str().unwrap();
            let before = with_certificate(original, kept_parts);
            assert_eq!(with_certificate(made, kept_parts), before, "{original}");
            let has_identifiers = |certificate: &X509Certificate<'_>| {
                let has = |oid: &str| {
                    let mut extensions = certificate.iter_extensions();
                    extensions.any(|found| found.oid.to_id_string() == oid)
                };
                KEY_IDENTIFIERS.into_iter().all(has)
            };
            assert!(with_certificate(made, has_identifiers), "{original}");
            let key = |certificate: &X509Certificate<'_>| {
                let key = certificate.public_key();
                let algorithm = key.algorithm.algorithm.to_id_string();
                (algorithm, key.raw.len(), key.raw.to_vec())
            };
            let (old, new) = (with_certificate(original, key), with_certificate(made, key));
            assert_eq!((&old.0, old.1), (&new.0, new.1), "{original}");
            assert_ne!(old.2, new.2, "{original}");
            assert_eq!(version["duration_used"], certificate_days(original));
            assert_eq!(version["value"]["ca"], made);
            for (flag, is_set) in [
                ("generated", true),
                ("self_signed", true),
                ("transitional", false),
            ] {
                assert_eq!(version[flag], is_set, "{flag}: {original}");
            }
        }
    }
}

#[tokio::test]
async fn a_certificate_with_a_ca_name_keeps_its_contents() {
    let server = Server::reused().await;
    let root = authority("root");
    server.stored("/root", "certificate", root.value()).await;
    let leaf = root.sign_leaf_with("leaf", |parameters| {
        let name = &mut parameters.distinguished_name;
        name.push(
            DnType::from_oid(&[0, 9, 2342, 19_200_300, 100, 1, 1]),
            DnValue::TeletexString("ada".try_into().unwrap()),
        );
        name.push(
            DnType::OrganizationName,
            DnValue::BmpString("Ämter, A + B".try_into().unwrap()),
        );
        parameters.subject_alt_names = vec![
            SanType::OtherName((vec![1, 3, 6, 1, 4, 1, 311, 20, 2, 3], "upn".into())),
            SanType::DnsName("b.example".try_into().unwrap()),
            SanType::DnsName("a.example".try_into().unwrap()),
        ];
        parameters.extended_key_usages = vec![
            ExtendedKeyUsagePurpose::Other(vec![1, 3, 6, 1, 5, 2, 3, 4]),
            ExtendedKeyUsagePurpose::ServerAuth,
        ];
    });
    let value = json!({"certificate": leaf.certificate, "ca_name": "/root"});
    server.stored("/leaf", "certificate", value).await;
    for _ in 0..2 {
        let version = server.regenerated("/leaf").await;
        let made = version["value"]["certificate"].as_str().unwrap();
        let (subject, extensions, seconds) = with_certificate(&leaf.certificate, kept_parts);
        let (made_subject, mut made_extensions, made_seconds) = with_certificate(made, kept_parts);
        // The set certificate has no basic constraints; generated certificates always have them.
        made_extensions.retain(|(oid, ..)| oid != "2.5.29.19");
        let made = (made_subject, made_extensions, made_seconds);
        assert_eq!(made, (subject, extensions, seconds));
        assert_eq!(version["value"]["ca"], root.certificate);
    }
}

#[tokio::test]
async fn a_leaf_named_like_its_ca_is_not_treated_as_self_signed() {
    let server = Server::reused().await;
    let root = authority_with("same", &PKCS_ECDSA_P384_SHA384);
    server.stored("/root", "certificate", root.value()).await;
    let namesake = root.sign_leaf("same");
    let value = json!({"certificate": namesake.certificate, "ca_name": "/root"});
    server.stored("/a", "certificate", value).await;
    let version = server.regenerated("/a").await;
    assert_eq!(version["value"]["ca"], root.certificate);
    assert_eq!(version["self_signed"], false);
}

#[tokio::test]
async fn a_ca_set_with_its_own_name_as_ca_name_is_not_self_signed() {
    let server = Server::reused().await;
    let root = authority("root");
    server.stored("/root", "certificate", root.value()).await;
    let value = json!({"certificate": root.certificate, "ca_name": "/root"});
    let set = server.stored("/a", "certificate", value).await;
    assert_eq!(set["self_signed"], false);
    let version = server.regenerated("/a").await;
    assert_eq!(version["value"]["ca"], root.certificate);
    assert_eq!(version["self_signed"], false);
}

#[tokio::test]
async fn an_unusual_rsa_key_length_is_rounded_up() {
    let server = Server::reused().await;
    for (original, bits) in [(RSA_1024, 2048), (RSA_2560, 3072)] {
        server
            .stored("/a", "certificate", json!({"certificate": original}))
            .await;
        let version = server.regenerated("/a").await;
        assert_eq!(version["key_length"], bits);
    }
}

#[tokio::test]
async fn an_unsupported_key_type_is_400_and_named() {
    let server = Server::reused().await;
    for (original, part) in [
        (P521, "ecdsa-p521"),
        (SECP256K1, "1.3.132.0.10"),
        (RSA_PSS, "rsassa-pss"),
        (RSA_5120, "5120"),
    ] {
        server
            .stored("/a", "certificate", json!({"certificate": original}))
            .await;
        server.regenerate("/a").await.expect_error(400, part);
    }
}

#[tokio::test]
async fn the_kept_parameter_is_refused_from_callers() {
    let server = Server::reused().await;
    for kept in [json!({}), json!({"subject": "MAA="}), json!("x")] {
        let parameters = json!({"common_name": "a", "self_sign": true, "kept": kept});
        let response = server.generate("/a", "certificate", parameters).await;
        response.expect_error(400, "kept");
    }
}

#[tokio::test]
async fn converge_detects_other_contents_but_ignores_their_order() {
    let server = Server::reused().await;
    // All parameters that describe each certificate.
    let of_foreign = json!({
        "common_name": "foreign", "organization_unit": "one", "duration": 30, "is_ca": true,
        "alternative_names": ["ada@example.com", "example.com", "spiffe://example.com/ada"],
    });
    let of_reordered = json!({
        "common_name": "x", "locality": "Berlin", "key_type": "ecdsa-p256", "duration": 30,
        "is_ca": true,
    });
    for (original, parameters, is_the_same) in [
        (FOREIGN, of_foreign, false),
        (REORDERED, of_reordered, true),
    ] {
        for regenerates in [false, true] {
            server
                .stored("/a", "certificate", json!({"certificate": original}))
                .await;
            if regenerates {
                server.regenerated("/a").await;
            }
            let before = server.versions("/a").await[0]["id"].clone();
            let response = server.generated("/a", "certificate", parameters.clone());
            let is_kept = response.await["id"] == before;
            assert_eq!(is_kept, is_the_same, "{parameters} {regenerates}");
        }
    }
}

// Set certificates with limits, usages or names that callers can't request.

/// An ECDSA CA with every kind of limit.
const LIMITED: &str = include_str!("../../../plugins/certificate/tests/keys/limited.pem");
/// A certificate with an unusual hash.
const ECDSA_SHA512: &str = include_str!("../../../plugins/certificate/tests/keys/ecdsa_sha512.pem");
/// A certificate with usages that do not suit its key.
const ENCIPHERING: &str = include_str!("../../../plugins/certificate/tests/keys/enciphering.pem");
/// A certificate whose issuer has the same name and another key type.
const OTHER_TYPE: &str = include_str!("../../../plugins/certificate/tests/keys/other_type.pem");

const NAME_CONSTRAINTS: &str = "2.5.29.30";

#[tokio::test]
async fn a_leaf_named_like_its_unknown_ca_is_400() {
    let server = Server::reused().await;
    server
        .stored("/a", "certificate", json!({"certificate": OTHER_TYPE}))
        .await;
    let response = server.regenerate("/a").await;
    response.expect_error(400, "that signed it is unknown");
}

#[tokio::test]
async fn intermediates_keep_path_lengths_but_not_name_constraints() {
    let server = Server::reused().await;
    let root = authority("root");
    server.stored("/root", "certificate", root.value()).await;
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
        server.stored("/middle", "certificate", value).await;
        let version = server.regenerated("/middle").await;
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
        server.stored("/middle", "certificate", value).await;
        server.regenerate("/middle").await.expect_error(400, words);
    }
}

#[tokio::test]
async fn a_kept_extension_that_no_ca_signs_is_400_with_the_reason() {
    let server = Server::reused().await;
    let root = authority("root");
    server.stored("/root", "certificate", root.value()).await;
    let control_character = [0x30, 3, 0x82, 1, 1];
    let unsorted = b"\x30\x1a\xa4\x18\x30\x16\x31\x14\
        \x30\x08\x06\x03\x55\x04\x03\x0c\x01b\x30\x08\x06\x03\x55\x04\x03\x0c\x01a";
    let constraint = [&[0x30, 7, 0xa0, 5], &control_character[..]].concat();
    let long_number = [&[2, 30][..], &[0x7f; 30]].concat();
    for (identifier, value, named) in [
        (17, &control_character[..], "subjectAltName"),
        (17, unsorted, "subjectAltName"),
        (30, &constraint, "nameConstraints"),
        (54, &long_number, "well formed"),
        (15, &[3, 1, 0], "keyUsage"),
    ] {
        let leaf = root.sign_leaf_with("leaf", |parameters| {
            let extension =
                CustomExtension::from_oid_content(&[2, 5, 29, identifier], value.to_vec());
            parameters.custom_extensions.push(extension);
        });
        let value = json!({"certificate": leaf.certificate, "ca_name": "/root"});
        server.stored("/leaf", "certificate", value).await;
        server.regenerate("/leaf").await.expect_error(400, named);
    }
}

#[tokio::test]
async fn changing_the_key_length_preserves_unrequestable_contents() {
    let server = Server::reused().await;
    let value = json!({"certificate": EXPRESSIBLE});
    let certificate = Certificate::set(&server, "/a", value).await;
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
    let response = certificate.regenerate(body).await;
    response.expect_error(400, "duration");
}
