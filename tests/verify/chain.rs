//! Chains from a root over an intermediate authority to a leaf.

#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test ends when what it needs is not there"
)]

use keywright_harness::{Program, Server, is_available};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime, pem::PemObject};
use serde_json::{Value, json};
use webpki::{ALL_VERIFICATION_ALGS, EndEntityCert, Error, KeyUsage, anchor_from_trusted_cert};

use crate::files::{Files, certificate, chain, chain_of};

#[tokio::test]
async fn openssl_verifies_the_chain_by_its_strictest_rules() {
    if !is_available("openssl") {
        return;
    }
    let server = Server::start().await;
    let chain = chain(&server).await;
    assert!(openssl_verifies(&chain, &["-x509_strict"]));
    assert!(openssl_verifies(
        &chain,
        &["-x509_strict", "-purpose", "sslserver"]
    ));
    assert!(openssl_verifies(
        &chain,
        &["-verify_hostname", "leaf.example.org"]
    ));
    assert!(openssl_verifies(&chain, &["-verify_ip", "10.0.0.1"]));
    assert!(!openssl_verifies(
        &chain,
        &["-verify_hostname", "other.example.org"]
    ));
    assert!(!openssl_verifies(&chain, &["-purpose", "sslclient"]));
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
async fn openssl_and_webpki_verify_chains_of_every_type_of_key_and_mixed_ones() {
    if !is_available("openssl") {
        return;
    }
    let server = Server::start().await;
    for key_types in KEY_TYPES_OF_CHAINS {
        let made = chain_of(&server, key_types).await;
        let mut regenerated = Vec::new();
        for name in ["/root", "/intermediate", "/leaf"] {
            regenerated.push(server.regenerate(name).await.expect(200).json());
        }
        for chain in [&made[..], &regenerated] {
            let options = ["-x509_strict", "-purpose", "sslserver"];
            assert!(openssl_verifies(chain, &options), "{key_types:?}");
            webpki_verifies(chain, "leaf.example.org", KeyUsage::server_auth()).unwrap();
        }
        let strange = [made[0].clone(), made[1].clone(), regenerated[2].clone()];
        assert!(!openssl_verifies(&strange, &[]), "{key_types:?}");
    }
}

#[tokio::test]
async fn openssl_verifies_a_chain_without_any_usages() {
    if !is_available("openssl") {
        return;
    }
    let server = Server::start().await;
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

#[tokio::test]
async fn openssl_does_not_verify_a_leaf_of_another_authority() {
    if !is_available("openssl") {
        return;
    }
    let server = Server::start().await;
    let [root, intermediate, leaf] = chain(&server).await;
    let renewed_root = server.regenerate("/root").await.expect(200).json();
    assert!(openssl_verifies(
        &[root, intermediate.clone(), leaf.clone()],
        &[]
    ));
    assert!(!openssl_verifies(&[renewed_root, intermediate, leaf], &[]));
}

#[tokio::test]
async fn webpki_verifies_the_chain_for_its_names_and_its_usage() {
    let server = Server::start().await;
    let chain = chain(&server).await;
    webpki_verifies(&chain, "leaf.example.org", KeyUsage::server_auth()).unwrap();
    webpki_verifies(&chain, "10.0.0.1", KeyUsage::server_auth()).unwrap();
    assert!(webpki_verifies(&chain, "other.example.org", KeyUsage::server_auth()).is_err());
    assert!(webpki_verifies(&chain, "leaf.example.org", KeyUsage::client_auth()).is_err());
}

#[tokio::test]
async fn webpki_verifies_what_was_regenerated() {
    let server = Server::start().await;
    chain(&server).await;
    let mut regenerated = Vec::new();
    for name in ["/root", "/intermediate", "/leaf"] {
        regenerated.push(server.regenerate(name).await.expect(200).json());
    }
    webpki_verifies(&regenerated, "leaf.example.org", KeyUsage::server_auth()).unwrap();
}

/// Whether OpenSSL verifies the last certificate by the first, over those between.
fn openssl_verifies(chain: &[Value], options: &[&str]) -> bool {
    let files = Files::new();
    let [root, intermediate, leaf] = chain else {
        panic!("not three certificates");
    };
    let root = files.write_member("root", root, "certificate");
    let intermediate = files.write_member("intermediate", intermediate, "certificate");
    let leaf = files.write_member("leaf", leaf, "certificate");
    let chain = ["verify", "-CAfile", &root, "-untrusted", &intermediate];
    let arguments = [&chain, options, &[leaf.as_str()]].concat();
    Program::run("openssl", &arguments, "").is_success
}

/// Verifies the last certificate by the first, over those between.
fn webpki_verifies(chain: &[Value], server_name: &str, usage: KeyUsage) -> Result<(), Error> {
    let chain: Vec<CertificateDer<'_>> = chain.iter().map(der).collect();
    let [root, intermediate, leaf] = chain.as_slice() else {
        panic!("not three certificates");
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
