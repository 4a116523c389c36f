//! The subject: its order, and texts that must not become more than one attribute.

#![expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a test ends when what it needs is not there"
)]

use keywright_harness::Server;
use serde_json::{Value, json};

use crate::keys::with_certificate;

/// The subject's attributes as (OID, text), one for each RDN.
fn attributes(version: &Value) -> Vec<(String, String)> {
    with_certificate(
        version["value"]["certificate"].as_str().unwrap(),
        |certificate| {
            let subject = certificate.subject();
            assert!(subject.iter_rdn().all(|rdn| rdn.iter().count() == 1));
            let attributes = subject.iter_attributes();
            attributes
                .map(|one| {
                    (
                        one.attr_type().to_id_string(),
                        one.as_str().unwrap().to_owned(),
                    )
                })
                .collect()
        },
    )
}

const FIELDS: [(&str, &str); 6] = [
    ("common_name", "2.5.4.3"),
    ("organization_unit", "2.5.4.11"),
    ("country", "2.5.4.6"),
    ("state", "2.5.4.8"),
    ("organization", "2.5.4.10"),
    ("locality", "2.5.4.7"),
];

#[tokio::test]
async fn only_given_subject_fields_appear_in_the_specified_order() {
    let server = Server::start().await;
    let mut all = json!({"self_sign": true});
    for (field, _) in FIELDS.iter().rev() {
        all[*field] = json!(if *field == "country" { "AT" } else { field });
    }
    let version = server
        .generate("/all", "certificate", all)
        .await
        .expect(200)
        .json();
    let expected: Vec<(String, String)> = FIELDS
        .iter()
        .map(|(field, oid)| {
            let text = if *field == "country" { "AT" } else { field };
            ((*oid).to_owned(), text.to_owned())
        })
        .collect();
    assert_eq!(attributes(&version), expected);

    let two = json!({"self_sign": true, "locality": "Graz", "common_name": "", "country": "AT"});
    let version = server
        .generate("/two", "certificate", two)
        .await
        .expect(200)
        .json();
    let expected = [("2.5.4.6", "AT"), ("2.5.4.7", "Graz")];
    assert_eq!(
        attributes(&version),
        expected.map(|(oid, text)| (oid.into(), text.into()))
    );
}

#[tokio::test]
async fn every_subject_text_is_kept_and_injects_nothing() {
    let server = Server::start().await;
    let longest = "x".repeat(64);
    let longest_non_ascii = "ß".repeat(64);
    for text in [
        "comma, O=Injected",
        "plus + O=Injected",
        "semicolon; O=Injected",
        "#0403020101",
        "\"quoted\"",
        "back\\slash \\2C",
        "equals = sign",
        "<angle> brackets",
        " spaces around ",
        "CN=nested,OU=nested+C=AT",
        "/CN=slashes/O=Injected",
        "Ämter für Ünicode",
        "密钥 ключ 🔑",
        "100% *.example.org",
        "a'b`c",
        &longest,
        &longest_non_ascii,
    ] {
        for (field, oid) in [FIELDS[0], FIELDS[4]] {
            let parameters = json!({field: text, "self_sign": true});
            let answer = server
                .generate_in_mode("overwrite", "/a", "certificate", parameters)
                .await;
            assert_eq!(answer.status, 200, "{field} {text:?}: {}", answer.body);
            let version = answer.json();
            assert_eq!(attributes(&version), [(oid.to_owned(), text.to_owned())]);
        }
    }
}

#[tokio::test]
async fn a_certificate_carries_the_bytes_of_its_issuers_subject() {
    let server = Server::start().await;
    let root = json!({
        "common_name": "Wurzel, ß+", "organization": "#o", "country": "AT", "is_ca": true,
    });
    let root = server
        .generate("/root", "certificate", root)
        .await
        .expect(200)
        .json();
    let leaf = json!({"common_name": "leaf", "ca": "/root"});
    let leaf = server
        .generate("/leaf", "certificate", leaf)
        .await
        .expect(200)
        .json();
    let bytes = |version: &Value, of_issuer: bool| {
        with_certificate(
            version["value"]["certificate"].as_str().unwrap(),
            |certificate| {
                let name = if of_issuer {
                    certificate.issuer()
                } else {
                    certificate.subject()
                };
                name.as_raw().to_vec()
            },
        )
    };
    assert_eq!(bytes(&leaf, true), bytes(&root, false));
}
