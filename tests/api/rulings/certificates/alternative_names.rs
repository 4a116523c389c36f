//! Rows 18 and 19: input that only Keywright accepts, and input that only the original accepts.

#![expect(
    clippy::indexing_slicing,
    reason = "a test ends when what it needs is not there"
)]

use keywright_harness::{Answer, Server};
use serde_json::{Value, json};

use super::openssl::Openssl;

async fn generate(server: &Server, parameters: Value) -> Answer {
    server
        .generate_in_mode("overwrite", "/a", "certificate", parameters)
        .await
}

fn text(openssl: &Openssl, version: &Value) -> String {
    let certificate = version["value"]["certificate"].as_str().unwrap_or_default();
    openssl.write("certificate.pem", certificate);
    openssl.run(&["x509", "-in", "certificate.pem", "-noout", "-text"])
}

#[tokio::test]
async fn row_18_e_mail_and_uri_alternative_names_are_accepted() {
    let Some(openssl) = Openssl::available() else {
        return;
    };
    let server = Server::start().await;
    let parameters = json!({
        "common_name": "a", "self_sign": true, "key_type": "ed25519",
        "alternative_names": ["ada@example.org", "spiffe://example.org/web"],
    });
    let version = generate(&server, parameters).await.expect(200).json();
    let text = text(&openssl, &version);
    assert!(
        text.contains("email:ada@example.org, URI:spiffe://example.org/web"),
        "{text}"
    );
}

#[tokio::test]
async fn row_18_ec_and_ed25519_keys_are_generated_and_set() {
    let Some(openssl) = Openssl::available() else {
        return;
    };
    let server = Server::start().await;
    for (key_type, algorithm) in [
        ("ecdsa-p256", "NIST CURVE: P-256"),
        ("ecdsa-p384", "NIST CURVE: P-384"),
        ("ed25519", "Public Key Algorithm: ED25519"),
    ] {
        let parameters = json!({"common_name": "a", "self_sign": true, "key_type": key_type});
        let version = generate(&server, parameters).await.expect(200).json();
        assert!(text(&openssl, &version).contains(algorithm), "{key_type}");
        let set = server
            .set("/set", "certificate", version["value"].clone())
            .await;
        assert_eq!(set.expect(200).json()["value"], version["value"]);
    }
}

#[tokio::test]
async fn row_19_dns_names_that_name_no_host_are_400() {
    let server = Server::start().await;
    for name in [
        "example.org.",
        "*.example.org.",
        "*",
        "*.",
        "",
        ".",
        "bücher.example",
        "example.рф",
        "例え.jp",
        "ex\u{e4}mple.org",
    ] {
        let parameters = json!({
            "common_name": "a", "self_sign": true, "key_type": "ed25519",
            "alternative_names": ["example.org", name],
        });
        let error = generate(&server, parameters).await.expect(400).error();
        assert!(error.contains("alternative_names"), "{name:?}: {error}");
    }
    assert!(server.versions("/a").await.is_empty());
}
