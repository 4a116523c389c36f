//! Accepted alternative names and their encoding.

#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test ends when what it needs is not there"
)]

use keywright_harness::{Answer, Server};
use serde_json::{Value, json};
use x509_parser::extensions::GeneralName;

use crate::keys::with_certificate;

async fn generate(server: &Server, alternative_names: Value) -> Answer {
    let parameters = json!({
        "common_name": "leaf", "self_sign": true, "key_type": "ecdsa-p256",
        "alternative_names": alternative_names,
    });
    server
        .generate_in_mode("overwrite", "/a", "certificate", parameters)
        .await
}

/// The type and text of a certificate's only alternative name.
fn only_name(version: &Value) -> (&'static str, String) {
    let certificate = version["value"]["certificate"].as_str().unwrap();
    with_certificate(certificate, |certificate| {
        let extension = certificate.subject_alternative_name().unwrap().unwrap();
        assert!(!extension.critical);
        let [name] = extension.value.general_names.as_slice() else {
            panic!("not one name")
        };
        match name {
            GeneralName::DNSName(name) => ("DNS", (*name).to_owned()),
            GeneralName::RFC822Name(address) => ("e-mail", (*address).to_owned()),
            GeneralName::URI(uri) => ("URI", (*uri).to_owned()),
            GeneralName::IPAddress(octets) => ("IP", octets.len().to_string()),
            other => panic!("another name: {other:?}"),
        }
    })
}

#[tokio::test]
async fn each_valid_name_is_encoded_by_its_kind() {
    let server = Server::start().await;
    let longest_label = "a".repeat(63);
    let longest = format!("{0}.{0}.{0}.{1}", longest_label, "d".repeat(61));
    assert_eq!(longest.len(), 253);
    let longest_address = format!("{}@{}", "a".repeat(64), &longest[64..]);
    assert_eq!(longest_address.len(), 254);
    let longest_uri = format!("spiffe://example.org/{}", "a".repeat(2_027));
    assert_eq!(longest_uri.len(), 2_048);
    for (what, names) in [
        (
            "DNS",
            &[
                "example.org",
                "EXAMPLE.org",
                "localhost",
                "*.example.org",
                ".example.org",
                "under_score.example.org",
                "_service.example.org",
                "1and1.example",
                "xn--bcher-kva.example",
                &longest_label,
                &longest,
            ][..],
        ),
        (
            "e-mail",
            &[
                "ada@example.org",
                "Ada.King+tag@Example.org",
                "root@localhost",
                &longest_address,
            ],
        ),
        (
            "URI",
            &[
                "spiffe://example.org/ns/prod/sa/web",
                "https://example.org",
                "https://ada@example.org:8443/path?query#fragment",
                "ldap://[2001:db8::7]/c=GB",
                "http://10.0.0.1/%20",
                &longest_uri,
            ],
        ),
    ] {
        for name in names {
            let answer = generate(&server, json!([name])).await.expect(200);
            assert_eq!(only_name(&answer.json()), (what, (*name).to_owned()));
        }
    }
    for (address, octets) in [
        ("10.0.0.1", "4"),
        ("255.255.255.255", "4"),
        ("::1", "16"),
        ("2001:db8::ff00:42:8329", "16"),
    ] {
        let answer = generate(&server, json!([address])).await.expect(200);
        assert_eq!(only_name(&answer.json()), ("IP", octets.to_owned()));
    }
}

#[tokio::test]
async fn an_alternative_name_of_no_valid_kind_is_400() {
    let server = Server::start().await;
    let label = "a".repeat(64);
    for name in [
        "",
        " ",
        "a b",
        "example.org ",
        "example.org/path",
        "localhost:8080",
        "1.2.3.999",
        "10.0.0.1/8",
        "10.0.0",
        "a..b",
        "example.*",
        "a.*.b",
        "**.example.org",
        "bücher.example",
        "exam\nple.org",
        "2001:db8::zz",
        &format!("{label}.example"),
        "@example.org",
        "ada@",
        "ada@example..org",
        "ada king@example.org",
        "ada@@example.org",
        "ädä@example.org",
        "ada@bücher.example",
        "Ada <ada@example.org>",
        &format!("a{label}@example.org"),
        "//example.org/path",
        "://example.org",
        "https://",
        "https:///path",
        "https://exam ple.org",
        "https://example.org/ä",
        "https://example.org/%zz",
        "https://a..b/",
        "https://example.org:port/",
        "urn:uuid:f81d4fae-7dec-11d0-a765-00a0c91e6bf6",
    ] {
        let answer = generate(&server, json!(["ok.org", name])).await;
        assert_eq!(answer.status, 400, "{name:?} was taken");
        let error = answer.error();
        assert!(error.contains("alternative_names"), "{name:?}: {error}");
    }
}

#[tokio::test]
async fn a_name_one_character_too_long_is_400_with_the_limit() {
    let server = Server::start().await;
    let label = "a".repeat(63);
    for (name, limit) in [
        (format!("{label}.{label}.{label}.{}", "d".repeat(62)), "253"),
        (
            format!("a{label}@{label}.{label}.{}", "d".repeat(62)),
            "254",
        ),
        (
            format!("spiffe://example.org/{}", "a".repeat(2_028)),
            "2048",
        ),
    ] {
        let answer = generate(&server, json!([name])).await.expect(400);
        let error = answer.error();
        assert!(
            error.contains(limit) && error.contains("alternative_names"),
            "{error}"
        );
    }
}

#[tokio::test]
async fn names_of_another_json_kind_are_400() {
    let server = Server::start().await;
    for wrong in [json!("example.org"), json!([1]), json!({})] {
        let error = generate(&server, wrong).await.expect(400).error();
        assert!(error.contains("alternative_names"), "{error}");
    }
}
