//! Row 8: RSA keys of fewer than 2048 bits.

use keywright_harness::Server;
use serde_json::{Value, json};

use super::openssl::Openssl;
use crate::keys::{certificate_key_bits, public_key_bits};

const WARNING: &str = "stored an RSA key that is shorter than 2048 bits";

fn rsa(openssl: &Openssl, bits: u32) -> String {
    openssl.private_key(&["RSA", "-pkeyopt", &format!("rsa_keygen_bits:{bits}")])
}

/// The lines of the log that warn of this credential.
fn warnings(server: &Server, name: &str) -> usize {
    let log = server.log();
    let lines = log.lines().filter(|line| line.contains(WARNING));
    lines
        .filter(|line| line.contains("WARN") && line.contains(name))
        .count()
}

#[tokio::test]
async fn row_08_a_certificate_of_1024_bits_is_accepted_with_a_warning() {
    let Some(openssl) = Openssl::available() else {
        return;
    };
    let server = Server::start().await;
    for (bits, is_warned) in [(1024, true), (2047, true), (2048, false)] {
        let short = openssl.authority(rsa(&openssl, bits), &[]);
        let traditional = {
            openssl.write("key.pem", &short.private_key);
            openssl.run(&["pkey", "-in", "key.pem", "-traditional"])
        };
        for (member, value) in [
            ("certificate", json!({"certificate": short.certificate})),
            ("ca", json!({"ca": short.certificate})),
            ("pkcs8", json!({"private_key": short.private_key})),
            ("pkcs1", json!({"private_key": traditional})),
            (
                "pair",
                json!({"certificate": short.certificate, "private_key": traditional}),
            ),
        ] {
            let name = format!("/{bits}/{member}");
            let stored = server.set(&name, "certificate", value.clone()).await;
            let stored = stored.expect(200).json();
            assert_eq!(stored["value"]["private_key"], value["private_key"]);
            assert_eq!(warnings(&server, &name), usize::from(is_warned), "{name}");
        }
    }
    let log = server.log();
    assert!(!log.contains("PRIVATE KEY") && !log.contains("BEGIN CERTIFICATE"));
}

#[tokio::test]
async fn row_08_a_version_of_1024_bits_is_added_with_a_warning() {
    let Some(openssl) = Openssl::available() else {
        return;
    };
    let server = Server::start().await;
    let short = openssl.authority(rsa(&openssl, 1024), &[]);
    let value = json!({"certificate": short.certificate});
    server
        .set("/a", "certificate", value.clone())
        .await
        .expect(200);
    let listed = server
        .get("/api/v1/certificates?name=/a")
        .await
        .expect(200)
        .json();
    let id = listed["certificates"][0]["id"].as_str().unwrap_or_default();
    let path = format!("/api/v1/certificates/{id}/versions");
    server
        .post(&path, json!({"value": value}))
        .await
        .expect(200);
    assert_eq!(warnings(&server, "/a"), 2);
}

#[tokio::test]
async fn row_08_a_certificate_of_fewer_than_1024_bits_is_400() {
    let Some(openssl) = Openssl::available() else {
        return;
    };
    let server = Server::start().await;
    for bits in [512, 1023] {
        let short = openssl.authority(rsa(&openssl, bits), &["-sha256"]);
        for (value, words) in [
            (
                json!({"certificate": short.certificate}),
                "certificate has an RSA key of fewer than 1024 bits",
            ),
            (
                json!({"ca": short.certificate}),
                "ca has an RSA key of fewer than 1024 bits",
            ),
            (
                json!({"private_key": short.private_key}),
                "it must be an RSA key of 1024 to 8192 bits",
            ),
        ] {
            let error = server
                .set("/a", "certificate", value)
                .await
                .expect(400)
                .error();
            assert!(error.contains(words), "{error}");
        }
    }
    assert!(server.versions("/a").await.is_empty());
}

#[tokio::test]
async fn row_08_a_ca_of_1024_bits_signs() {
    let Some(openssl) = Openssl::available() else {
        return;
    };
    let server = Server::start().await;
    for bits in [1024, 2047] {
        let short = openssl.authority(rsa(&openssl, bits), &[]);
        let value = json!({"certificate": short.certificate, "private_key": short.private_key});
        server.set("/root", "certificate", value).await.expect(200);
        let leaf = json!({"ca": "/root", "common_name": "leaf"});
        let leaf = server
            .generate_in_mode("overwrite", "/leaf", "certificate", leaf)
            .await;
        let leaf = leaf.expect(200).json();
        let certificate = leaf["value"]["certificate"].as_str().unwrap_or_default();
        openssl.assert_verified(&short.certificate, certificate);
        let regenerated = server.regenerate("/leaf").await.expect(200).json();
        let certificate = regenerated["value"]["certificate"]
            .as_str()
            .unwrap_or_default();
        openssl.assert_verified(&short.certificate, certificate);
    }
}

#[tokio::test]
async fn row_08_an_rsa_key_of_1024_bits_is_accepted_with_a_warning() {
    let Some(openssl) = Openssl::available() else {
        return;
    };
    let server = Server::start().await;
    for (bits, status, is_warned) in [(1023, 400, false), (1024, 200, true), (2048, 200, false)] {
        let private_key = rsa(&openssl, bits);
        openssl.write("key.pem", &private_key);
        let run = |arguments: &[&str]| openssl.run(&[arguments, &["-in", "key.pem"]].concat());
        for (form, member, key) in [
            ("pkcs8", "private_key", private_key.clone()),
            ("pkcs1", "private_key", run(&["pkey", "-traditional"])),
            ("spki", "public_key", run(&["pkey", "-pubout"])),
            (
                "pkcs1-public",
                "public_key",
                run(&["rsa", "-RSAPublicKey_out"]),
            ),
        ] {
            let name = format!("/{bits}/{form}");
            let answer = server.set(&name, "rsa", json!({member: key})).await;
            assert_eq!(answer.status, status, "{name}: {}", answer.body);
            if status == 400 {
                let words = format!("{member} has an RSA key of fewer than 1024 bits");
                assert!(answer.error().contains(&words), "{}", answer.body);
            } else {
                assert_eq!(answer.json()["value"][member], key);
            }
            assert_eq!(warnings(&server, &name), usize::from(is_warned), "{name}");
        }
    }
}

#[tokio::test]
async fn row_08_keys_are_generated_of_2048_bits_and_more() {
    let Some(openssl) = Openssl::available() else {
        return;
    };
    let server = Server::start().await;
    for (credential_type, more) in [
        ("rsa", json!({})),
        ("ssh", json!({})),
        (
            "certificate",
            json!({"common_name": "a", "self_sign": true}),
        ),
    ] {
        let mut parameters = more;
        parameters["key_length"] = json!(1024);
        let answer = server.generate("/a", credential_type, parameters).await;
        assert!(answer.expect(400).error().contains("key_length"));
    }
    let short = openssl.authority(rsa(&openssl, 1024), &[]);
    let value = json!({"certificate": short.certificate, "private_key": short.private_key});
    server
        .set("/certificate", "certificate", value)
        .await
        .expect(200);
    let regenerated = server.regenerate("/certificate").await.expect(200).json();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    assert_eq!(
        certificate_key_bits(&text(&regenerated["value"]["certificate"])),
        2048
    );
    let public_key = openssl.public_key(&short.private_key);
    server
        .set("/rsa", "rsa", json!({"public_key": public_key}))
        .await
        .expect(200);
    let regenerated = server.regenerate("/rsa").await.expect(200).json();
    assert_eq!(
        public_key_bits(&text(&regenerated["value"]["public_key"])),
        2048
    );
}
