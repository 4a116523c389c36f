//! Signatures and key lengths.

use std::time::Duration;

use keywright_harness::{
    Server, Text, authority_contents,
    der::{INTEGER, Node, SEQUENCE},
};
use rcgen::{PKCS_RSA_SHA256, PublicKeyData, SignatureAlgorithm, SigningKey};
use serde_json::{Value, json};

use super::{Identity, Openssl, P256, rsa_8192};
use crate::{
    certificates::Certificate,
    keys::{certificate_key_bits, public_key_bits},
};

// Algorithms for verifying the signature of a set leaf.

const RSA: &[&str] = &["RSA", "-pkeyopt", "rsa_keygen_bits:2048"];

const HASHES: [&str; 5] = ["-sha1", "-sha224", "-sha256", "-sha384", "-sha512"];

/// Asserts that a leaf is accepted with its CA and refused with another CA of the same kind, like in OpenSSL.
async fn assert_verified(
    server: &Server,
    openssl: &Openssl,
    (authority, other): (&Identity, &Identity),
    options: &[&str],
) {
    let leaf = openssl.leaf_of(authority, options);
    openssl.assert_verified(&authority.certificate, &leaf.certificate);
    server
        .stored("/root", "certificate", authority.value())
        .await;
    for value in [
        json!({"ca": authority.certificate, "certificate": leaf.certificate}),
        json!({"ca_name": "/root", "certificate": leaf.certificate}),
    ] {
        let response = server.set("/leaf", "certificate", value).await;
        assert_eq!(response.status, 200, "{options:?}: {}", response.body);
    }
    let value = json!({"ca": other.certificate, "certificate": leaf.certificate});
    let response = server.set("/leaf", "certificate", value).await;
    response.expect_error(400, "certificate was not signed by ca");
}

#[tokio::test]
async fn rsa_of_1024_to_8192_bits_is_verified_with_every_hash() {
    let openssl = Openssl::new();
    let server = Server::reused().await;
    let kind =
        |bits: &str| openssl.private_key(&["RSA", "-pkeyopt", &format!("rsa_keygen_bits:{bits}")]);
    let other = openssl.authority(kind("1024"), &[]);
    for key in [
        kind("1024"),
        kind("2047"),
        kind("2048"),
        kind("3072"),
        rsa_8192(),
    ] {
        let authority = openssl.authority(key, &[]);
        for hash in HASHES {
            assert_verified(&server, &openssl, (&authority, &other), &[hash]).await;
        }
    }
}

#[tokio::test]
async fn ecdsa_with_every_hash_and_ed25519_are_verified() {
    let openssl = Openssl::new();
    let server = Server::reused().await;
    let curves = ["P-256", "P-384", "P-521"].map(|name| format!("ec_paramgen_curve:{name}"));
    let ecdsa = curves.iter().map(|curve| vec!["EC", "-pkeyopt", curve]);
    for kind in ecdsa.chain([vec!["ED25519"]]) {
        let [authority, other] =
            [(); 2].map(|()| openssl.authority(openssl.private_key(&kind), &[]));
        let hashes: Vec<&[&str]> = match kind[0] {
            "EC" => HASHES.iter().map(std::slice::from_ref).collect(),
            _ => vec![&[]],
        };
        for hash in hashes {
            assert_verified(&server, &openssl, (&authority, &other), hash).await;
        }
    }
}

#[tokio::test]
async fn rsa_with_pss_is_verified() {
    let openssl = Openssl::new();
    let server = Server::reused().await;
    let [authority, other] = [(); 2].map(|()| openssl.authority(openssl.private_key(RSA), &[]));
    for (hash, salt) in [
        ("-sha1", "0"),
        ("-sha224", "20"),
        ("-sha256", "digest"),
        ("-sha384", "digest"),
        ("-sha512", "max"),
    ] {
        let salt = format!("rsa_pss_saltlen:{salt}");
        let options = [hash, "-sigopt", "rsa_padding_mode:pss", "-sigopt", &salt];
        assert_verified(&server, &openssl, (&authority, &other), &options).await;
    }
    // A key for PSS alone.
    let kind = ["RSA-PSS", "-pkeyopt", "rsa_keygen_bits:2048"];
    let authority = openssl.authority(openssl.private_key(&kind), &[]);
    let leaf = openssl.leaf_of(&authority, &[]);
    openssl.assert_verified(&authority.certificate, &leaf.certificate);
    let value = json!({"ca": authority.certificate, "certificate": leaf.certificate});
    server.stored("/leaf", "certificate", value).await;
}

#[tokio::test]
async fn a_ca_with_a_key_of_another_algorithm_is_refused() {
    let openssl = Openssl::new();
    let server = Server::reused().await;
    let authorities: Vec<_> = [P256, &["ED25519"], RSA]
        .map(|kind| openssl.authority(openssl.private_key(kind), &[]))
        .into();
    for (position, authority) in authorities.iter().enumerate() {
        let leaf = openssl.leaf_of(authority, &[]);
        for (other_position, other) in authorities.iter().enumerate() {
            let value = json!({"ca": other.certificate, "certificate": leaf.certificate});
            let response = server.set("/leaf", "certificate", value).await;
            if position == other_position {
                response.expect(200);
            } else {
                response.expect_error(400, "certificate was not signed by ca");
            }
        }
    }
}

#[tokio::test]
async fn an_algorithm_that_is_not_supported_is_named() {
    let openssl = Openssl::new();
    let server = Server::reused().await;
    let rsa = openssl.authority(openssl.private_key(RSA), &[]);
    let ed448 = openssl.authority(openssl.private_key(&["ED448"]), &[]);
    let pss: &[&str] = &[
        "-sha256",
        "-sigopt",
        "rsa_padding_mode:pss",
        "-sigopt",
        "rsa_mgf1_md:sha1",
    ];
    for (authority, options, algorithm) in [
        (&rsa, &["-md5"][..], "md5WithRSAEncryption"),
        (&rsa, &["-sha512-256"], "1.2.840.113549.1.1.16"),
        (&rsa, pss, "RSASSA-PSS with these parameters"),
        (&ed448, &[], "ed448"),
    ] {
        let leaf = openssl.leaf_of(authority, options);
        let words = format!(
            "certificate was not checked: the signature algorithm {algorithm} can't be verified"
        );
        for field in [
            json!({"ca": authority.certificate, "certificate": leaf.certificate}),
            json!({"ca": rsa.certificate, "certificate": leaf.certificate}),
        ] {
            let response = server.set("/leaf", "certificate", field).await;
            let error = response.expect(400).error();
            assert!(error.starts_with(&words), "{error}");
        }
        // Without the CA there is no signature to verify.
        server.stored("/leaf", "certificate", leaf.value()).await;
    }
}

#[tokio::test]
async fn an_unsupported_curve_is_reported_as_unverifiable() {
    let openssl = Openssl::new();
    let server = Server::reused().await;
    for curve in ["secp256k1", "brainpoolP256r1"] {
        let curve = format!("ec_paramgen_curve:{curve}");
        let authority = openssl.authority(openssl.private_key(&["EC", "-pkeyopt", &curve]), &[]);
        let leaf = openssl.leaf_of(&authority, &[]);
        let value = json!({"ca": authority.certificate, "certificate": leaf.certificate});
        let response = server.set("/leaf", "certificate", value).await;
        response.expect_error(400, "no signature can be verified with the signer's key");
    }
}

#[tokio::test]
async fn keys_beyond_the_limits_are_refused_before_computing() {
    let openssl = Openssl::new();
    let server = Server::reused().await;
    let signer = openssl.authority(openssl.private_key(RSA), &[]);
    let leaf = openssl.leaf_of(&signer, &[]).certificate;
    let odd = |bytes: usize| [&[0x80][..], &vec![0x5a; bytes - 2], &[0x01]].concat();
    for (what, modulus, exponent) in [
        ("modulus of 8200 bits", odd(1_025), vec![1, 0, 1]),
        ("modulus of 160,000 bits", odd(20_000), vec![1, 0, 1]),
        ("exponent of 34 bits", odd(256), vec![3, 0, 0, 0, 1]),
        ("exponent of 2,040 bits", odd(256), odd(255)),
        ("exponent of 160,000 bits", odd(256), odd(20_000)),
        ("exponent of 1", odd(256), vec![1]),
        ("even modulus", [odd(255), vec![0]].concat(), vec![1, 0, 1]),
        ("modulus of 0", vec![], vec![1, 0, 1]),
    ] {
        let ca = HostileKey::new(&modulus, &exponent).authority();
        let before = server.processor_time();
        let value = json!({"ca": ca, "certificate": leaf});
        let response = server.set("/leaf", "certificate", value).await;
        let error = response.expect(400).error();
        let used = server.processor_time().saturating_sub(before);
        assert!(
            error.contains("no signature can be verified with the signer's key")
                || error.contains("ca has an RSA key of fewer than 1024 bits"),
            "{what}: {error}"
        );
        assert!(used < Duration::from_secs(2), "{what}: {used:?}");
    }
}

/// A public RSA key with arbitrary numbers, and signatures of zeros.
struct HostileKey(Vec<u8>);

impl HostileKey {
    fn new(modulus: &[u8], exponent: &[u8]) -> Self {
        let numbers = vec![integer(modulus), integer(exponent)];
        Self(Node::of(SEQUENCE, numbers).to_der())
    }

    /// Returns a CA with this key, in PEM.
    fn authority(&self) -> String {
        let certificate = authority_contents("root").self_signed(self);
        certificate.unwrap().pem()
    }
}

impl PublicKeyData for HostileKey {
    fn der_bytes(&self) -> &[u8] {
        &self.0
    }

    fn algorithm(&self) -> &'static SignatureAlgorithm {
        &PKCS_RSA_SHA256
    }
}

impl SigningKey for HostileKey {
    fn sign(&self, _: &[u8]) -> Result<Vec<u8>, rcgen::Error> {
        Ok(vec![0; 256])
    }
}

fn integer(number: &[u8]) -> Node {
    let needs_zero = number.first().is_none_or(|first| *first >= 0x80);
    let sign: &[u8] = if needs_zero { &[0] } else { &[] };
    Node::new(INTEGER, &[sign, number].concat())
}

// RSA keys of fewer than 2048 bits.

const WARNING: &str = "stored an RSA key that is shorter than 2048 bits";

fn rsa(openssl: &Openssl, bits: u32) -> String {
    openssl.private_key(&["RSA", "-pkeyopt", &format!("rsa_keygen_bits:{bits}")])
}

/// Returns the number of warnings about this credential in the log.
fn warnings(server: &Server, name: &str) -> usize {
    let log = server.log();
    let lines = log.lines().filter(|line| line.contains(WARNING));
    lines
        .filter(|line| line.contains("WARN") && line.contains(name))
        .count()
}

#[tokio::test]
async fn a_certificate_of_1024_bits_is_accepted_with_a_warning() {
    let openssl = Openssl::new();
    let server = Server::start().await;
    for (bits, is_warned) in [(1024, true), (2047, true), (2048, false)] {
        let short = openssl.authority(rsa(&openssl, bits), &[]);
        let traditional = {
            openssl.write("key.pem", &short.private_key);
            openssl.run("pkey -in key.pem -traditional")
        };
        for (field, value) in [
            ("certificate", short.public()),
            ("ca", json!({"ca": short.certificate})),
            ("pkcs8", json!({"private_key": short.private_key})),
            ("pkcs1", json!({"private_key": traditional})),
            (
                "pair",
                json!({"certificate": short.certificate, "private_key": traditional}),
            ),
        ] {
            let name = format!("/{bits}/{field}");
            let stored = server.stored(&name, "certificate", value.clone()).await;
            assert_eq!(stored["value"]["private_key"], value["private_key"]);
            assert_eq!(warnings(&server, &name), usize::from(is_warned), "{name}");
        }
    }
    let log = server.log();
    log.assert_lacks("PRIVATE KEY");
    log.assert_lacks("BEGIN CERTIFICATE");
}

#[tokio::test]
async fn a_version_of_1024_bits_is_added_with_a_warning() {
    let openssl = Openssl::new();
    let server = Server::start().await;
    let short = openssl.authority(rsa(&openssl, 1024), &[]);
    let value = short.public();
    server.stored("/a", "certificate", value.clone()).await;
    let certificate = Certificate::named(&server, "/a").await;
    let response = certificate.add_version(json!({"value": value})).await;
    response.expect(200);
    assert_eq!(warnings(&server, "/a"), 2);
}

#[tokio::test]
async fn a_certificate_of_fewer_than_1024_bits_is_400() {
    let openssl = Openssl::new();
    let server = Server::reused().await;
    for bits in [512, 1023] {
        let short = openssl.authority(rsa(&openssl, bits), &["-sha256"]);
        for (value, words) in [
            (
                short.public(),
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
            let response = server.set("/a", "certificate", value).await;
            response.expect_error(400, words);
        }
    }
    assert!(server.versions("/a").await.is_empty());
}

#[tokio::test]
async fn a_ca_of_1024_bits_signs() {
    let openssl = Openssl::new();
    let server = Server::reused().await;
    for bits in [1024, 2047] {
        let short = openssl.authority(rsa(&openssl, bits), &[]);
        server.stored("/root", "certificate", short.value()).await;
        let leaf = json!({"ca": "/root", "common_name": "leaf"});
        let leaf = server
            .generate_in_mode("overwrite", "/leaf", "certificate", leaf)
            .await;
        let leaf = leaf.expect(200).json();
        let certificate = leaf["value"]["certificate"].as_str().unwrap_or_default();
        openssl.assert_verified(&short.certificate, certificate);
        let regenerated = server.regenerated("/leaf").await;
        let certificate = regenerated["value"]["certificate"]
            .as_str()
            .unwrap_or_default();
        openssl.assert_verified(&short.certificate, certificate);
    }
}

#[tokio::test]
async fn an_rsa_key_of_1024_bits_is_accepted_with_a_warning() {
    let openssl = Openssl::new();
    let server = Server::start().await;
    for (bits, status, is_warned) in [(1023, 400, false), (1024, 200, true), (2048, 200, false)] {
        let private_key = rsa(&openssl, bits);
        openssl.write("key.pem", &private_key);
        let run = |arguments: &[&str]| openssl.run(&[arguments, &["-in", "key.pem"]].concat());
        for (form, field, key) in [
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
            let response = server.set(&name, "rsa", json!({field: key})).await;
            assert_eq!(response.status, status, "{name}: {}", response.body);
            if status == 400 {
                let words = format!("{field} has an RSA key of fewer than 1024 bits");
                assert!(response.error().contains(&words), "{}", response.body);
            } else {
                assert_eq!(response.json()["value"][field], key);
            }
            assert_eq!(warnings(&server, &name), usize::from(is_warned), "{name}");
        }
    }
}

#[tokio::test]
async fn regenerated_keys_have_at_least_2048_bits() {
    let openssl = Openssl::new();
    let server = Server::reused().await;
    let short = openssl.authority(rsa(&openssl, 1024), &[]);
    let value = short.value();
    server.stored("/certificate", "certificate", value).await;
    let regenerated = server.regenerated("/certificate").await;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let actual = certificate_key_bits(&text(&regenerated["value"]["certificate"]));
    assert_eq!(actual, 2048);
    let public_key = openssl.public_key(&short.private_key);
    let value = json!({"public_key": public_key});
    server.stored("/rsa", "rsa", value).await;
    let regenerated = server.regenerated("/rsa").await;
    let actual = public_key_bits(&text(&regenerated["value"]["public_key"]));
    assert_eq!(actual, 2048);
}
