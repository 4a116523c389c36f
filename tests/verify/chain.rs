//! Chains of a root CA, an intermediate CA and a leaf.

use keywright_harness::{Commanded, Server};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime, pem::PemObject};
use serde_json::{Value, json};
use webpki::{ALL_VERIFICATION_ALGS, EndEntityCert, Error, KeyUsage, anchor_from_trusted_cert};

use crate::{Files, certificate, chain_of};

#[tokio::test]
async fn openssl_and_webpki_verify_the_chain_for_names_and_usage() {
    let server = Server::reused().await;
    let chain = chain_of(&server, ["rsa"; 3]).await;
    for (options, is_verified) in [
        (&["-x509_strict"][..], true),
        (&["-x509_strict", "-purpose", "sslserver"], true),
        (&["-verify_hostname", "leaf.example.org"], true),
        (&["-verify_ip", "10.0.0.1"], true),
        (&["-verify_hostname", "other.example.org"], false),
        (&["-purpose", "sslclient"], false),
    ] {
        let actual = openssl_verifies(&chain, options);
        assert_eq!(actual, is_verified, "{options:?}");
    }
    let (server_auth, client_auth) = (KeyUsage::server_auth(), KeyUsage::client_auth());
    webpki_verifies(&chain, "leaf.example.org", server_auth).unwrap();
    webpki_verifies(&chain, "10.0.0.1", server_auth).unwrap();
    assert!(webpki_verifies(&chain, "other.example.org", server_auth).is_err());
    assert!(webpki_verifies(&chain, "leaf.example.org", client_auth).is_err());
}

/// Chains with keys of one type each, and mixed.
const KEY_TYPES_OF_CHAINS: [[&str; 3]; 6] = [
    ["rsa"; 3],
    ["ecdsa-p256"; 3],
    ["ecdsa-p384"; 3],
    ["ed25519"; 3],
    ["rsa", "ecdsa-p256", "ed25519"],
    ["ed25519", "ecdsa-p384", "rsa"],
];

#[tokio::test]
async fn openssl_and_webpki_verify_chains_of_every_key_type_and_mixed() {
    let server = Server::reused().await;
    for key_types in KEY_TYPES_OF_CHAINS {
        let generated = chain_of(&server, key_types).await;
        let mut regenerated = Vec::new();
        for name in ["/root", "/intermediate", "/leaf"] {
            regenerated.push(server.regenerated(name).await);
        }
        for chain in [&generated[..], &regenerated] {
            let options = ["-x509_strict", "-purpose", "sslserver"];
            assert!(openssl_verifies(chain, &options), "{key_types:?}");
            webpki_verifies(chain, "leaf.example.org", KeyUsage::server_auth()).unwrap();
        }
        // A leaf that another version of the intermediate CA signed.
        let mixed = [
            generated[0].clone(),
            generated[1].clone(),
            regenerated[2].clone(),
        ];
        assert!(!openssl_verifies(&mixed, &[]), "{key_types:?}");
    }
}

#[tokio::test]
async fn openssl_verifies_a_chain_without_any_usages() {
    let server = Server::reused().await;
    let mut chain = Vec::new();
    for (name, parameters) in [
        ("/root", json!({"common_name": "root", "is_ca": true})),
        (
            "/intermediate",
            json!({"common_name": "intermediate", "is_ca": true, "ca": "/root"}),
        ),
        (
            "/leaf",
            json!({"common_name": "leaf", "ca": "/intermediate"}),
        ),
    ] {
        chain.push(certificate(&server, name, parameters).await);
    }
    assert!(openssl_verifies(&chain, &[]));
}

/// Returns whether OpenSSL verifies a chain: root, intermediate, leaf.
fn openssl_verifies(chain: &[Value], options: &[&str]) -> bool {
    let files = Files::new();
    let [root, intermediate, leaf] = chain else {
        panic!("expected three certificates");
    };
    let root = files.write_field("root", root, "certificate");
    let intermediate = files.write_field("intermediate", intermediate, "certificate");
    let leaf = files.write_field("leaf", leaf, "certificate");
    let chain = ["verify", "-CAfile", &root, "-untrusted", &intermediate];
    let arguments = [&chain, options, &[leaf.as_str()]].concat();
    Commanded::run("openssl", &arguments, "").is_success()
}

/// Verifies a chain with webpki: root, intermediate, leaf.
fn webpki_verifies(chain: &[Value], server_name: &str, usage: KeyUsage) -> Result<(), Error> {
    let chain: Vec<CertificateDer<'_>> = chain.iter().map(der).collect();
    let [root, intermediate, leaf] = chain.as_slice() else {
        panic!("expected three certificates");
    };
    let leaf = EndEntityCert::try_from(leaf)?;
    leaf.verify_for_usage(
        ALL_VERIFICATION_ALGS,
        &[anchor_from_trusted_cert(root)?],
        std::slice::from_ref(intermediate),
        UnixTime::now(),
        usage,
        None,
        None,
    )?;
    leaf.verify_is_valid_for_subject_name(&ServerName::try_from(server_name).unwrap())
}

fn der(version: &Value) -> CertificateDer<'static> {
    let pem = version["value"]["certificate"].as_str().unwrap();
    CertificateDer::from_pem_slice(pem.as_bytes()).unwrap()
}
