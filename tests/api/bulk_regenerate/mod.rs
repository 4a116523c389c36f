//! Regenerating everything that an authority signed: `POST /api/v1/bulk-regenerate`.

#![expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a test ends when what it needs is not there"
)]

mod atomicity;
mod changes;
mod queue;
mod requests;
mod selection;
mod signers;

use keywright_harness::{Answer, Server};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::{given, keys::with_certificate};

const BULK_REGENERATE: &str = "/api/v1/bulk-regenerate";

/// Generates an authority, signed by another one or by itself.
async fn authority(server: &Server, name: &str, ca: Option<&str>) -> Value {
    let parameters = json!({"common_name": name, "is_ca": true, "ca": ca.unwrap_or_default()});
    given::generate(server, name, "certificate", parameters).await
}

/// Generates a leaf.
async fn leaf(server: &Server, name: &str, ca: &str) -> Value {
    let parameters = json!({"common_name": name, "ca": ca});
    given::generate(server, name, "certificate", parameters).await
}

/// Generates so many leaves at once: `/leaf/0`, `/leaf/1`, and so on.
async fn leaves(server: &Server, ca: &str, count: usize) -> Vec<String> {
    let names: Vec<String> = (0..count)
        .map(|number| format!("{ca}/leaf/{number}"))
        .collect();
    let requests: Vec<_> = names
        .iter()
        .map(|name| {
            let parameters = json!({"common_name": "leaf", "ca": ca});
            let body = json!({"name": name, "type": "certificate", "parameters": parameters});
            let request = server.authorized(Method::POST, "/api/v1/data");
            tokio::spawn(request.body(body.to_string()).send())
        })
        .collect();
    for request in requests {
        assert_eq!(request.await.unwrap().unwrap().status(), 200);
    }
    names
}

async fn bulk_regenerate(server: &Server, signed_by: &str) -> Answer {
    let body = json!({"signed_by": signed_by});
    server.post(BULK_REGENERATE, body).await
}

/// The names in an answer.
fn names(answer: &Answer) -> Vec<String> {
    let json = answer.clone().expect(200).json();
    let names = json["regenerated_credentials"].as_array().unwrap();
    let names = names.iter().map(|name| name.as_str().unwrap().to_owned());
    names.collect()
}

/// Begins a bulk regeneration, and goes on when it has generated so many values.
async fn begin(
    server: &Server,
    signed_by: &str,
    generated: usize,
) -> JoinHandle<reqwest::Result<reqwest::Response>> {
    let before = generated_count(server);
    let request = server.authorized(Method::POST, BULK_REGENERATE);
    let body = json!({"signed_by": signed_by}).to_string();
    let bulk = tokio::spawn(request.body(body).send());
    while generated_count(server) < before + generated {
        assert!(!bulk.is_finished(), "it ended before it was interrupted");
        tokio::task::yield_now().await;
    }
    bulk
}

/// How many values the server has generated, as its log says.
fn generated_count(server: &Server) -> usize {
    server.log().matches(r#""function":"generate""#).count()
}

/// The newest version of a credential.
async fn newest(server: &Server, name: &str) -> Value {
    given::versions(server, name).await[0].clone()
}

/// Asserts that one version holds the other as its authority, whose key verifies its signature.
#[track_caller]
fn assert_signed_by(version: &Value, authority: &Value) {
    assert_eq!(
        version["value"]["ca"], authority["value"]["certificate"],
        "{} is not signed by this version of {}",
        version["name"], authority["name"]
    );
    let pem = |version: &Value| version["value"]["certificate"].as_str().unwrap().to_owned();
    with_certificate(&pem(authority), |authority| {
        with_certificate(&pem(version), |certificate| {
            let key = Some(authority.public_key());
            assert!(certificate.verify_signature(key).is_ok());
        });
    });
}
