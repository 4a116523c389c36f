//! The fields of certificates as OpenSSL prints them, compared with the request: extensions and subjects.

use keywright_harness::Server;
use serde_json::{Value, json};

use crate::{Files, certificate, openssl};

/// Returns the extensions of a certificate as OpenSSL prints them: the name, and the lines below it.
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

/// Returns the text of a certificate as OpenSSL prints it.
fn text(version: &Value) -> String {
    let files = Files::new();
    let file = files.write_field("certificate", version, "certificate");
    openssl(&["x509", "-in", &file, "-noout", "-text"])
}

/// Returns the SHA-1 of a certificate's public key bits, as OpenSSL prints key identifiers. The DER of a key ends with
/// these bits.
fn key_identifier(version: &Value, key_bits_bytes: usize) -> String {
    let files = Files::new();
    let certificate = files.write_field("certificate", version, "certificate");
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

/// A key type: its name, the length of a public key in bytes, key usages that it allows (RFC 8813, RFC 9295), and the same
/// usages as OpenSSL prints them.
type KeyType = (&'static str, usize, &'static [&'static str], &'static str);

const KEY_TYPES: [KeyType; 4] = [
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
async fn generated_and_regenerated_extensions_match_the_request() {
    let server = Server::reused().await;
    for (key_type, key_bytes, usages, printed_usages) in KEY_TYPES {
        let full = json!({
            "common_name": "full",
            "ca": "/root",
            "alternative_names": [
                "z.example.org", "10.0.0.1", "*.a.example.org", "2001:db8::1",
                "under_score.org", "spiffe://example.org/a", "ada@example.org",
            ],
            "key_usage": usages,
            "extended_key_usage": [
                "timestamping", "server_auth", "email_protection", "client_auth", "code_signing",
            ],
            "key_type": key_type,
        });
        let full_extensions = [
            pair(
                "X509v3 Extended Key Usage:",
                "Time Stamping, TLS Web Server Authentication, E-mail Protection, \
                 TLS Web Client Authentication, Code Signing",
            ),
            pair("X509v3 Key Usage: critical", printed_usages),
            pair(
                "X509v3 Subject Alternative Name:",
                "DNS:z.example.org, IP Address:10.0.0.1, DNS:*.a.example.org, \
                 IP Address:2001:DB8:0:0:0:0:0:1, DNS:under_score.org, URI:spiffe://example.org/a, email:ada@example.org",
            ),
        ];
        let root = json!({"common_name": "root", "is_ca": true, "key_type": key_type});
        let leaf = json!({"common_name": "leaf", "ca": "/root", "key_type": key_type});
        let root = certificate(&server, "/root", root).await;
        let leaf = certificate(&server, "/leaf", leaf).await;
        let full = certificate(&server, "/full", full).await;
        let mut cases = vec![(root.clone(), root.clone(), true, &[][..])];
        cases.push((leaf, root.clone(), false, &[]));
        cases.push((full, root, false, &full_extensions));
        let root = server.regenerated("/root").await;
        cases.push((root.clone(), root.clone(), true, &[]));
        for (name, requested) in [("/leaf", &[][..]), ("/full", &full_extensions)] {
            let version = server.regenerated(name).await;
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
async fn version_signature_algorithm_and_key_are_as_specified() {
    let server = Server::reused().await;
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
        // Newer OpenSSL omits the blanks around an equals sign.
        let tight = line.replace(" = ", "=");
        assert!(
            text.contains(line) || text.contains(&tight),
            "{line} is not in {text}"
        );
    }
}

#[tokio::test]
async fn leaves_of_a_ca_without_key_id_have_no_authority_key_id() {
    let server = Server::reused().await;
    let files = Files::new();
    let settings = "[req]\ndistinguished_name=name\n[name]\n[x]\nbasicConstraints=critical,CA:TRUE\n\
                    subjectKeyIdentifier=none\nauthorityKeyIdentifier=none\n";
    let settings = files.write("settings", settings);
    let (key, root) = (files.path("key"), files.path("root"));
    let request = "req -x509 -newkey rsa:2048 -nodes -days 30 -subj /CN=root -extensions x";
    let mut arguments: Vec<&str> = request.split(' ').collect();
    arguments.extend(["-config", &settings, "-keyout", key.to_str().unwrap()]);
    arguments.extend(["-out", root.to_str().unwrap()]);
    openssl(&arguments);
    let value = json!({
        "certificate": std::fs::read_to_string(&root).unwrap(),
        "private_key": std::fs::read_to_string(&key).unwrap(),
    });
    server.stored("/root", "certificate", value).await;
    let leaf = json!({"common_name": "leaf", "ca": "/root"});
    let leaf = certificate(&server, "/leaf", leaf).await;
    let extensions = extensions(&leaf);
    for (part, is_there) in [
        ("Subject Key Identifier", true),
        ("Authority Key Identifier", false),
    ] {
        let found = extensions.iter().any(|(name, _)| name.contains(part));
        assert_eq!(found, is_there, "{part}: {extensions:?}");
    }
}

/// Returns the attributes of a name, unescaped, in their order in the certificate.
fn attributes(version: &Value, which: &str) -> Vec<String> {
    let files = Files::new();
    let file = files.write_field("certificate", version, "certificate");
    let names = ["-nameopt", "sep_multiline,sname,utf8"];
    let text = openssl(&[&["x509", "-in", &file, "-noout", which], &names[..]].concat());
    let mut lines = text.lines();
    assert_eq!(
        lines.next(),
        Some(format!("{}=", which.trim_start_matches('-')).as_str())
    );
    lines
        .map(|line| line.strip_prefix("    ").unwrap().to_owned())
        .collect()
}

#[tokio::test]
async fn special_characters_in_subjects_are_kept_and_inject_nothing() {
    let server = Server::reused().await;
    let longest = "x".repeat(64);
    let longest_non_ascii = "ß".repeat(64);
    for text in [
        "comma, O=Injected",
        "plus + O=Injected",
        "semicolon; O=Injected",
        "#0403020101",
        "\"quoted\"",
        "back\\slash \\2C",
        " spaces around ",
        "100% *.example.org",
        "a'b`c",
        "equals = sign",
        "<angle>",
        "CN=nested,OU=nested+C=AT",
        "/CN=slashes/O=Injected",
        "Ämter für Ünicode",
        "密钥 ключ 🔑",
        &longest,
        &longest_non_ascii,
    ] {
        let parameters =
            json!({"common_name": text, "organization": text, "is_ca": true, "country": "AT"});
        let root = certificate(&server, "/root", parameters).await;
        let expected = [format!("CN={text}"), "C=AT".to_owned(), format!("O={text}")];
        assert_eq!(attributes(&root, "-subject"), expected);
        let regenerated = server.regenerated("/root").await;
        assert_eq!(attributes(&regenerated, "-subject"), expected);
        let leaf = json!({"common_name": "leaf", "ca": "/root"});
        let leaf = certificate(&server, "/leaf", leaf).await;
        assert_eq!(attributes(&leaf, "-issuer"), expected);
    }
}
