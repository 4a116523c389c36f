//! The extensions that `openssl x509 -text` prints, compared with the requested ones.

#![expect(
    clippy::unwrap_used,
    reason = "a test ends when what it needs is not there"
)]

use keywright_harness::{Server, is_available};
use serde_json::{Value, json};

use crate::files::{Files, certificate, openssl};

/// Every extension of a certificate as OpenSSL prints it: its line, and the lines below it.
fn extensions(version: &Value) -> Vec<(String, String)> {
    let text = text(version);
    let (_, extensions) = text.split_once("X509v3 extensions:\n").unwrap();
    let mut found: Vec<(String, String)> = Vec::new();
    for line in extensions.lines() {
        let indentation = line.len() - line.trim_start().len();
        match (indentation, found.last_mut()) {
            (12, _) => found.push((line.trim().to_owned(), String::new())),
            (16.., Some((_, value))) => value.push_str(line.trim()),
            _ => break,
        }
    }
    found
}

/// All that OpenSSL prints of a certificate.
fn text(version: &Value) -> String {
    let files = Files::new();
    let file = files.write_member("certificate", version, "certificate");
    openssl(&["x509", "-in", &file, "-noout", "-text"])
}

/// The SHA-1 of a certificate's public key bits, as OpenSSL prints key identifiers. The bits end the key's DER.
fn key_identifier(version: &Value, key_bits_bytes: usize) -> String {
    let files = Files::new();
    let certificate = files.write_member("certificate", version, "certificate");
    let spki = openssl(&["x509", "-in", &certificate, "-noout", "-pubkey"]);
    let spki = files.write("spki", &spki);
    let der = files.path("der");
    let der = der.to_str().unwrap();
    openssl(&[
        "pkey", "-pubin", "-in", &spki, "-outform", "DER", "-out", der,
    ]);
    let bytes = std::fs::read(der).unwrap();
    let bits = files.path("bits");
    let begin = bytes.len().checked_sub(key_bits_bytes).unwrap();
    std::fs::write(&bits, bytes.get(begin..).unwrap()).unwrap();
    let digest = openssl(&["dgst", "-sha1", "-c", bits.to_str().unwrap()]);
    digest.trim().rsplit(' ').next().unwrap().to_uppercase()
}

fn pair(name: &str, value: &str) -> (String, String) {
    (name.to_owned(), value.to_owned())
}

/// A type of key: how many bytes a public key of it has, and usages that it may have (RFC 8813, RFC 9295), as they are
/// asked for and as OpenSSL prints them.
type OfKeyType = (&'static str, usize, &'static [&'static str], &'static str);

const OF_KEY_TYPES: [OfKeyType; 4] = [
    (
        "rsa",
        270,
        &["key_encipherment", "crl_sign", "data_encipherment"],
        "Key Encipherment, Data Encipherment, CRL Sign",
    ),
    (
        "ecdsa-p256",
        65,
        &[
            "crl_sign",
            "digital_signature",
            "decipher_only",
            "key_agreement",
        ],
        "Digital Signature, Key Agreement, CRL Sign, Decipher Only",
    ),
    (
        "ecdsa-p384",
        97,
        &["encipher_only", "key_agreement"],
        "Key Agreement, Encipher Only",
    ),
    (
        "ed25519",
        32,
        &["crl_sign", "digital_signature", "non_repudiation"],
        "Digital Signature, Non Repudiation, CRL Sign",
    ),
];

#[tokio::test]
async fn every_extension_is_what_was_asked_for_generated_and_regenerated() {
    if !is_available("openssl") {
        return;
    }
    let server = Server::start().await;
    for (key_type, key_bytes, usages, of_usages) in OF_KEY_TYPES {
        let full = json!({
            "common_name": "full",
            "ca": "/root",
            "alternative_names": [
                "z.example.org", "10.0.0.1", "*.a.example.org", "2001:db8::1",
                "spiffe://example.org/a", "ada@example.org",
            ],
            "key_usage": usages,
            "extended_key_usage": ["timestamping", "server_auth", "email_protection"],
            "key_type": key_type,
        });
        let of_full = [
            pair(
                "X509v3 Extended Key Usage:",
                "Time Stamping, TLS Web Server Authentication, E-mail Protection",
            ),
            pair("X509v3 Key Usage: critical", of_usages),
            pair(
                "X509v3 Subject Alternative Name:",
                "DNS:z.example.org, IP Address:10.0.0.1, DNS:*.a.example.org, \
                 IP Address:2001:DB8:0:0:0:0:0:1, URI:spiffe://example.org/a, email:ada@example.org",
            ),
        ];
        let root = json!({"common_name": "root", "is_ca": true, "key_type": key_type});
        let leaf = json!({"common_name": "leaf", "ca": "/root", "key_type": key_type});
        let root = certificate(&server, "/root", root).await;
        let leaf = certificate(&server, "/leaf", leaf).await;
        let full = certificate(&server, "/full", full).await;
        let mut cases = vec![(root.clone(), root.clone(), true, &[][..])];
        cases.push((leaf, root.clone(), false, &[]));
        cases.push((full, root, false, &of_full));
        let root = server.regenerate("/root").await.expect(200).json();
        cases.push((root.clone(), root.clone(), true, &[]));
        for (name, requested) in [("/leaf", &[][..]), ("/full", &of_full)] {
            let version = server.regenerate(name).await.expect(200).json();
            cases.push((version, root.clone(), false, requested));
        }
        for (version, issuer, is_authority, requested) in cases {
            let flag = if is_authority { "CA:TRUE" } else { "CA:FALSE" };
            let mut expected = vec![
                pair(
                    "X509v3 Authority Key Identifier:",
                    &key_identifier(&issuer, key_bytes),
                ),
                pair("X509v3 Basic Constraints: critical", flag),
                pair(
                    "X509v3 Subject Key Identifier:",
                    &key_identifier(&version, key_bytes),
                ),
            ];
            expected.extend_from_slice(requested);
            let mut found = extensions(&version);
            for (_, value) in &mut found {
                // Older OpenSSL writes this before a key identifier.
                *value = value.trim_start_matches("keyid:").to_owned();
            }
            found.sort();
            expected.sort();
            assert_eq!(found, expected, "{key_type}");
        }
    }
}

#[tokio::test]
async fn what_was_set_has_the_extensions_that_it_had_when_it_is_regenerated() {
    if !is_available("openssl") {
        return;
    }
    let server = Server::start().await;
    let set = include_str!("../../plugins/certificate/tests/keys/kept.pem");
    let value = json!({"certificate": set});
    let set = server
        .set("/a", "certificate", value)
        .await
        .expect(200)
        .json();
    let regenerated = server.regenerate("/a").await.expect(200).json();
    let of_keys = |(name, _): &(String, String)| name.contains("Key Identifier");
    let mut before = extensions(&set);
    let mut after = extensions(&regenerated);
    let identifiers: Vec<_> = after.iter().filter(|pair| of_keys(pair)).cloned().collect();
    assert_eq!(
        identifiers.len(),
        2,
        "of the subject and of the authority, which are new"
    );
    for pairs in [&mut before, &mut after] {
        pairs.retain(|pair| !of_keys(pair));
        pairs.sort();
    }
    assert_eq!(before.len(), 4);
    assert_eq!(after, before);
}

#[tokio::test]
async fn version_signature_algorithm_and_key_are_as_specified() {
    if !is_available("openssl") {
        return;
    }
    let server = Server::start().await;
    certificate(
        &server,
        "/root",
        json!({"common_name": "root", "is_ca": true}),
    )
    .await;
    let parameters = json!({"common_name": "leaf", "ca": "/root", "key_length": 3072});
    let leaf = certificate(&server, "/leaf", parameters).await;
    let text = text(&leaf);
    for line in [
        "Version: 3 (0x2)",
        "Signature Algorithm: sha256WithRSAEncryption",
        "Issuer: CN = root",
        "Subject: CN = leaf",
        "Public Key Algorithm: rsaEncryption",
        "Public-Key: (3072 bit)",
        "Exponent: 65537 (0x10001)",
    ] {
        // Newer OpenSSL leaves out the blanks around an equals sign.
        let tight = line.replace(" = ", "=");
        assert!(
            text.contains(line) || text.contains(&tight),
            "{line} is not in {text}"
        );
    }
}

#[tokio::test]
async fn an_authority_without_a_key_identifier_leaves_its_leaves_without_one() {
    if !is_available("openssl") {
        return;
    }
    let server = Server::start().await;
    let files = Files::new();
    let settings = "[req]\ndistinguished_name=name\n[name]\n[x]\nbasicConstraints=critical,CA:TRUE\n\
                    subjectKeyIdentifier=none\nauthorityKeyIdentifier=none\n";
    let settings = files.write("settings", settings);
    let (key, root) = (files.path("key"), files.path("root"));
    openssl(&[
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-days",
        "30",
        "-subj",
        "/CN=root",
        "-config",
        &settings,
        "-extensions",
        "x",
        "-keyout",
        key.to_str().unwrap(),
        "-out",
        root.to_str().unwrap(),
    ]);
    let value = json!({
        "certificate": std::fs::read_to_string(&root).unwrap(),
        "private_key": std::fs::read_to_string(&key).unwrap(),
    });
    server.set("/root", "certificate", value).await.expect(200);
    let leaf = certificate(
        &server,
        "/leaf",
        json!({"common_name": "leaf", "ca": "/root"}),
    )
    .await;
    let names: Vec<String> = extensions(&leaf)
        .into_iter()
        .map(|(name, _)| name)
        .collect();
    assert!(
        names
            .iter()
            .any(|name| name.contains("Subject Key Identifier")),
        "{names:?}"
    );
    assert!(
        !names
            .iter()
            .any(|name| name.contains("Authority Key Identifier")),
        "{names:?}"
    );
}
