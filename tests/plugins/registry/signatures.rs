//! Required signatures of components by minisign or cosign keys.

use std::fs;

use aws_lc_rs::{
    encoding::AsDer,
    rand::SystemRandom,
    signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair},
};
use base64::{Engine, prelude::BASE64_STANDARD};
use keywright_harness::{DockerRegistry, Options, Server, Text};
use serde_json::json;

use super::{Workshop, assert_generates, assert_refused, is_available, path};

fn by_minisign(workshop: &Workshop, component: &str, key: &str) -> Options {
    let signature = format!("signature = {{ minisign_public_key = \"{key}\" }}");
    workshop.options(component, &signature)
}

fn by_cosign(workshop: &Workshop, component: &str, key: &str) -> Options {
    let key = workshop.path(key);
    let signature = format!("signature = {{ cosign_public_key = \"{}\" }}", path(&key));
    workshop.options(component, &signature)
}

#[tokio::test]
async fn registry_component_needs_the_minisign_signature() {
    if !is_available("minisign") {
        return;
    }
    let Some(mut registry) = DockerRegistry::start() else {
        return;
    };
    let workshop = Workshop::new();
    let (key, other) = (
        workshop.minisign_key("ours"),
        workshop.minisign_key("theirs"),
    );
    let unsigned = workshop.pushed(&registry, "plain.wasm", "unsigned");
    let missing = [
        "the plugin plain",
        "the component is not signed",
        ".minisig in its repository",
    ];
    assert_refused(&by_minisign(&workshop, &unsigned, &key), &missing);

    workshop.minisign("ours", "plain.wasm");
    let reference = workshop.pushed(&registry, "plain.wasm", "1");
    let refused = ["the plugin plain", "another key than the configured one"];
    assert_refused(&by_minisign(&workshop, &reference, &other), &refused);
    let options = by_minisign(&workshop, &reference, &key);
    let server = Server::start_with(&options).await;
    assert_generates(&server, "/a").await;
    let folder = server.stop().await;

    // The signature is cached with the component, and verified again.
    registry.stop();
    drop(Server::start_in(folder, &options).await);
    assert_refused(&by_minisign(&workshop, &reference, &other), &refused);
    let cached = &workshop.pulled_files(".minisig")[0];
    let signature = fs::read_to_string(cached).unwrap();
    fs::write(cached, signature.replace("timestamp", "Timestamp")).unwrap();
    assert_refused(&options, &["its signature does not match"]);
    fs::write(cached, "nonsense").unwrap();
    assert_refused(&options, &["its signature is malformed"]);
    fs::remove_file(cached).unwrap();
    assert_refused(&options, &["the registry does not respond"]);
    registry.start_again();
    drop(Server::start_with(&options).await);
}

#[tokio::test]
async fn minisign_signature_of_another_component_is_rejected() {
    if !is_available("minisign") {
        return;
    }
    let Some(registry) = DockerRegistry::start() else {
        return;
    };
    let workshop = Workshop::new();
    let key = workshop.minisign_key("ours");
    workshop.build("other.wasm");
    workshop.minisign("ours", "other.wasm");
    let signature = workshop.path("plain.wasm.minisig");
    fs::copy(workshop.path("other.wasm.minisig"), &signature).unwrap();
    let reference = workshop.pushed(&registry, "plain.wasm", "1");
    let options = by_minisign(&workshop, &reference, &key);
    assert_refused(
        &options,
        &["the plugin plain", "its signature does not match"],
    );
    fs::write(signature, "nonsense").unwrap();
    let target = format!("oci://{}/plain:1", registry.host());
    let run = workshop.push(&["plain.wasm", &target]).expect(1);
    run.errors.assert_contains("its signature is malformed");
}

#[tokio::test]
async fn file_needs_the_minisign_signature() {
    if !is_available("minisign") {
        return;
    }
    let workshop = Workshop::new();
    let (key, other) = (
        workshop.minisign_key("ours"),
        workshop.minisign_key("theirs"),
    );
    let file = workshop.path("plain.wasm");
    let signed = |key: &str| by_minisign(&workshop, path(&file), key);
    assert_refused(
        &signed(&key),
        &["the component is not signed", "plain.wasm.minisig"],
    );
    workshop.minisign("ours", "plain.wasm");
    assert_refused(&signed(&other), &["another key than the configured one"]);
    let server = Server::start_with(&signed(&key)).await;
    assert_generates(&server, "/a").await;

    let signature = workshop.path("plain.wasm.minisig");
    let valid = fs::read(&signature).unwrap();
    fs::write(&signature, vec![b'a'; 16 * 1024 + 1]).unwrap();
    assert_refused(
        &signed(&key),
        &["could not read its signature", "too large"],
    );
    fs::write(&signature, valid).unwrap();
    workshop.build("plain.wasm");
    assert_refused(&signed(&key), &["its signature does not match"]);
    assert_refused(&signed("RWQ"), &["must be a minisign public key"]);
}

#[tokio::test]
async fn registry_component_needs_the_cosign_signature() {
    let Some(mut registry) = DockerRegistry::start() else {
        return;
    };
    let workshop = Workshop::new();
    let (ours, theirs) = (
        Cosign::new(&workshop, "ours.pub"),
        Cosign::new(&workshop, "theirs.pub"),
    );
    let reference = workshop.pushed(&registry, "plain.wasm", "1");
    let options = by_cosign(&workshop, &reference, "ours.pub");
    let missing = [
        "the plugin plain",
        "the component is not signed",
        ".sig in its repository",
    ];
    assert_refused(&options, &missing);

    let (_, digest) = reference.split_once('@').unwrap();
    let another = digest.replace(digest.split_at(12).1, &"0".repeat(59));
    theirs.sign(&registry, digest, &[digest]).await;
    assert_refused(&options, &["another key than the configured one"]);
    ours.sign(&registry, digest, &[&another]).await;
    assert_refused(&options, &["for another manifest", &another]);
    ours.sign(&registry, digest, &[&another, digest]).await;
    let server = Server::start_with(&options).await;
    assert_generates(&server, "/a").await;
    let folder = server.stop().await;

    registry.stop();
    drop(Server::start_in(folder, &options).await);
    let other = by_cosign(&workshop, &reference, "theirs.pub");
    assert_refused(&other, &["another key than the configured one"]);
    let file = workshop.path("plain.wasm");
    let of_file = by_cosign(&workshop, path(&file), "ours.pub");
    assert_refused(&of_file, &["can only verify components in a registry"]);
}

/// A substitute for cosign, with a key pair.
struct Cosign(EcdsaKeyPair);

impl Cosign {
    /// Generates a key pair, and writes the public key.
    fn new(workshop: &Workshop, file: &str) -> Self {
        let pair = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_ASN1_SIGNING).unwrap();
        let der = pair.public_key().as_der().unwrap();
        let text = BASE64_STANDARD.encode(der.as_ref());
        let pem = format!("-----BEGIN PUBLIC KEY-----\n{text}\n-----END PUBLIC KEY-----\n");
        fs::write(workshop.path(file), pem).unwrap();
        Self(pair)
    }

    /// Pushes signatures for a manifest. Their payloads contain the digests in `of`.
    async fn sign(&self, registry: &DockerRegistry, manifest: &str, of: &[&str]) {
        let repository = "plugins/plain";
        let media_type = "application/vnd.dev.cosign.simplesigning.v1+json";
        let mut layers = Vec::new();
        for digest in of {
            let payload = json!({
                "critical": {
                    "identity": {"docker-reference": format!("{}/{repository}", registry.host())},
                    "image": {"docker-manifest-digest": digest},
                    "type": "cosign container image signature",
                },
                "optional": null,
            });
            let payload = payload.to_string();
            let signature = self
                .0
                .sign(&SystemRandom::new(), payload.as_bytes())
                .unwrap();
            let mut layer = registry
                .put(repository, media_type, payload.as_bytes())
                .await;
            let signature = BASE64_STANDARD.encode(signature);
            layer["annotations"] = json!({"dev.cosignproject.cosign/signature": signature});
            layers.push(layer);
        }
        let config_type = "application/vnd.oci.image.config.v1+json";
        let config = registry.put(repository, config_type, b"{}").await;
        let signatures = json!({
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "config": config,
            "layers": layers,
        });
        let tag = format!("{}.sig", manifest.replace(':', "-"));
        registry.put_manifest(repository, &tag, &signatures).await;
    }
}
