//! A generate with `converge` adds a version only if the stored one has other parameters.

#![expect(
    clippy::indexing_slicing,
    reason = "a test ends when what it needs is not there"
)]

mod certificate;
mod certificate_issuer;
mod keys;
mod password;
mod user;

use keywright_harness::Server;
use serde_json::{Value, json};

/// The effect of a generate with `converge` on an existing credential.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Kept,
    Written,
}

/// Generates `/a` with the first parameters, then with the others in the default mode; returns the outcome.
async fn converge(server: &Server, credential_type: &str, first: &Value, then: &Value) -> Outcome {
    let made = server
        .generate_in_mode("overwrite", "/a", credential_type, first.clone())
        .await;
    let made = made.expect(200).json();
    converge_from(server, &made, credential_type, then).await
}

/// Generates `/a` in the default mode and returns the outcome for its newest version.
async fn converge_from(
    server: &Server,
    existing: &Value,
    credential_type: &str,
    parameters: &Value,
) -> Outcome {
    let answer = server
        .generate("/a", credential_type, parameters.clone())
        .await;
    let answer = answer.expect(200).json();
    if answer["id"] == existing["id"] {
        assert_eq!(answer["value"], existing["value"]);
        Outcome::Kept
    } else {
        Outcome::Written
    }
}

/// The same parameters with some replaced.
fn with(base: &Value, others: &Value) -> Value {
    let mut changed = base.clone();
    for (name, value) in others.as_object().into_iter().flatten() {
        changed[name] = value.clone();
    }
    changed
}

#[tokio::test]
async fn the_newest_version_is_compared() {
    let server = Server::start().await;
    let (short, long) = (json!({"length": 10}), json!({"length": 50}));
    assert_eq!(
        converge(&server, "password", &short, &long).await,
        Outcome::Written
    );
    assert_eq!(
        converge(&server, "password", &short, &short).await,
        Outcome::Kept
    );
    server
        .set("/a", "password", json!("mine"))
        .await
        .expect(200);
    let before = server.versions("/a").await[0].clone();
    assert_eq!(
        converge_from(&server, &before, "password", &short).await,
        Outcome::Written
    );
}
