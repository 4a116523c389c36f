//! A generate with `converge` adds a version only if the stored version has other parameters.

use keywright_harness::Server;
use serde_json::{Value, json};

use Outcome::{Kept, Written};

use crate::given;

/// The effect of a generate with `converge` on an existing credential.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Kept,
    Written,
}

/// Generates `/a` with the first parameters, then with the others in the default mode; returns the outcome.
pub(super) async fn converge(
    server: &Server,
    credential_type: &str,
    first: &Value,
    then: &Value,
) -> Outcome {
    let made = server.generate_in_mode("overwrite", "/a", credential_type, first.clone());
    let made = made.await.expect(200).json();
    converge_from(server, &made, credential_type, then).await
}

/// Generates `/a` in the default mode and returns the outcome for its newest version.
async fn converge_from(
    server: &Server,
    existing: &Value,
    credential_type: &str,
    parameters: &Value,
) -> Outcome {
    let response = given::generate(server, "/a", credential_type, parameters.clone()).await;
    if response["id"] == existing["id"] {
        assert_eq!(response["value"], existing["value"]);
        Kept
    } else {
        Written
    }
}

/// Asserts the outcome of a generate of `/a` in the default mode.
pub(super) async fn assert_outcome(
    outcome: Outcome,
    server: &Server,
    existing: &Value,
    credential_type: &str,
    parameters: &Value,
) {
    let became = converge_from(server, existing, credential_type, parameters).await;
    assert_eq!(became, outcome, "{credential_type}: {parameters}");
}

/// Returns the same parameters with some replaced.
pub(super) fn with(base: &Value, others: &Value) -> Value {
    let mut changed = base.clone();
    for (name, value) in others.as_object().into_iter().flatten() {
        changed[name] = value.clone();
    }
    changed
}

#[tokio::test]
async fn the_newest_version_is_compared() {
    let server = Server::reused().await;
    let (short, long) = (json!({"length": 10}), json!({"length": 50}));
    let became = converge(&server, "password", &short, &long).await;
    assert_eq!(became, Written);
    let became = converge(&server, "password", &short, &short).await;
    assert_eq!(became, Kept);
    given::set(&server, "/a", "password", json!("mine")).await;
    let before = server.versions("/a").await[0].clone();
    assert_outcome(Written, &server, &before, "password", &short).await;
}

// Passwords.

#[tokio::test]
async fn every_parameter_is_compared_and_defaults_equal_absence() {
    let server = Server::reused().await;
    let defaults = json!({
        "length": 30,
        "exclude_upper": false,
        "exclude_lower": false,
        "exclude_number": false,
        "include_special": false,
    });
    for credential_type in ["password", "user"] {
        server.delete("/api/v1/data?name=/a").await;
        for (first, then, outcome) in [
            (json!({}), json!({}), Kept),
            (json!({}), defaults.clone(), Kept),
            (defaults.clone(), json!({}), Kept),
            (json!({"length": 30}), json!({"length": "30"}), Kept),
            (json!({"length": 20}), json!({}), Written),
            (json!({}), with(&defaults, &json!({"length": 31})), Written),
            (
                json!({}),
                with(&defaults, &json!({"exclude_upper": true})),
                Written,
            ),
            (
                json!({}),
                with(&defaults, &json!({"exclude_lower": true})),
                Written,
            ),
            (
                json!({}),
                with(&defaults, &json!({"exclude_number": true})),
                Written,
            ),
            (
                json!({}),
                with(&defaults, &json!({"include_special": true})),
                Written,
            ),
            (json!({"include_special": true}), json!({}), Written),
        ] {
            let became = converge(&server, credential_type, &first, &then).await;
            assert_eq!(became, outcome, "{credential_type}: {first}, then {then}");
        }
    }
}

#[tokio::test]
async fn a_set_password_always_differs() {
    let server = Server::reused().await;
    let thirty_letters = "abcdefghijABCDEFGHIJ0123456789";
    let set = given::set(&server, "/a", "password", json!(thirty_letters)).await;
    assert_outcome(Written, &server, &set, "password", &json!({})).await;
    let made = server.versions("/a").await[0].clone();
    assert_outcome(Kept, &server, &made, "password", &json!({})).await;
}

#[tokio::test]
async fn a_regenerated_password_still_has_its_parameters() {
    let server = Server::reused().await;
    let parameters = json!({"length": 12, "include_special": true});
    given::generate(&server, "/a", "password", parameters.clone()).await;
    let regenerated = server.regenerated("/a").await;
    assert_outcome(Kept, &server, &regenerated, "password", &parameters).await;
}

// Users: differences from passwords.

#[tokio::test]
async fn the_requested_username_is_compared() {
    let server = Server::reused().await;
    let (ada, grace) = (json!({"username": "ada"}), json!({"username": "grace"}));
    for (first, then, outcome) in [
        (&ada, &ada, Kept),
        (&ada, &grace, Written),
        (&ada, &json!({"username": "Ada"}), Written),
        (&ada, &json!({}), Written),
        (&json!({}), &ada, Written),
        (&json!({}), &json!({}), Kept),
        (&json!({}), &json!({"username": ""}), Kept),
    ] {
        assert_eq!(
            converge(&server, "user", first, then).await,
            outcome,
            "{first}, then {then}"
        );
    }
}

#[tokio::test]
async fn requesting_the_generated_username_adds_a_version() {
    let server = Server::reused().await;
    let made = given::generate(&server, "/a", "user", json!({})).await;
    let requested = json!({"username": made["value"]["username"]});
    assert_outcome(Written, &server, &made, "user", &requested).await;
}

#[tokio::test]
async fn the_deprecated_username_field_is_compared_too() {
    let server = Server::reused().await;
    let body = json!({"name": "/a", "type": "user", "value": {"username": "ada"}});
    let response = server.post("/api/v1/data", body.clone()).await;
    let made = response.expect(200).json();
    assert_outcome(Kept, &server, &made, "user", &json!({"username": "ada"})).await;
    let again = server.post("/api/v1/data", body).await.expect(200).json();
    assert_eq!(again["id"], made["id"]);
}

#[tokio::test]
async fn a_set_user_always_differs() {
    let server = Server::reused().await;
    let value = json!({"username": "ada", "password": "abcdefghijABCDEFGHIJ0123456789"});
    let set = server.stored("/a", "user", value).await;
    let same_name = json!({"username": "ada"});
    assert_outcome(Written, &server, &set, "user", &same_name).await;
}

#[tokio::test]
async fn after_a_regeneration_converge_compares_the_username() {
    let server = Server::reused().await;
    server.generated("/a", "user", json!({})).await;
    let regenerated = server.regenerated("/a").await;
    let with_name = json!({"username": regenerated["value"]["username"]});
    assert_outcome(Kept, &server, &regenerated, "user", &with_name).await;
    assert_outcome(Written, &server, &regenerated, "user", &json!({})).await;
}

// RSA and SSH keys.

#[tokio::test]
async fn the_key_length_is_compared() {
    let server = Server::reused().await;
    for credential_type in ["rsa", "ssh"] {
        server.delete("/api/v1/data?name=/a").await;
        for (first, then, outcome) in [
            (json!({}), json!({}), Kept),
            (json!({}), json!({"key_length": 2048}), Kept),
            (
                json!({"key_length": 3072}),
                json!({"key_length": "3072"}),
                Kept,
            ),
            (json!({"key_length": 3072}), json!({}), Written),
            (json!({}), json!({"key_length": 3072}), Written),
        ] {
            let became = converge(&server, credential_type, &first, &then).await;
            assert_eq!(became, outcome, "{credential_type}: {first}, then {then}");
        }
    }
}

#[tokio::test]
async fn the_ssh_comment_is_compared_and_empty_equals_absent() {
    let server = Server::reused().await;
    let (ada, grace) = (
        json!({"ssh_comment": "ada"}),
        json!({"ssh_comment": "grace"}),
    );
    let empty = json!({"ssh_comment": ""});
    for (first, then, outcome) in [
        (&ada, &ada, Kept),
        (&ada, &grace, Written),
        (&ada, &empty, Written),
        (&ada, &json!({}), Written),
        (&json!({}), &empty, Kept),
        (&empty, &json!({}), Kept),
        (&json!({}), &ada, Written),
    ] {
        assert_eq!(
            converge(&server, "ssh", first, then).await,
            outcome,
            "{first}, then {then}"
        );
    }
}

#[tokio::test]
async fn a_set_key_is_kept_if_it_matches_the_parameters() {
    let server = Server::reused().await;
    for (credential_type, parameters, other) in [
        ("rsa", json!({}), json!({"key_length": 3072})),
        ("rsa", json!({"key_length": 3072}), json!({})),
        ("ssh", json!({}), json!({"ssh_comment": "ada"})),
        (
            "ssh",
            json!({"ssh_comment": "ada on host"}),
            json!({"ssh_comment": "ada"}),
        ),
    ] {
        let made = server
            .generate("/made", credential_type, parameters.clone())
            .await;
        let value = made.expect(200).json()["value"].clone();
        for value in [value.clone(), json!({"public_key": value["public_key"]})] {
            let set = given::set(&server, "/a", credential_type, value).await;
            assert_outcome(Kept, &server, &set, credential_type, &parameters).await;
            assert_outcome(Written, &server, &set, credential_type, &other).await;
        }
        for name in ["/made", "/a"] {
            let response = server.delete(&format!("/api/v1/data?name={name}")).await;
            response.expect(204);
        }
    }
}

#[tokio::test]
async fn a_key_whose_public_part_is_absent_or_unreadable_differs() {
    let server = Server::reused().await;
    for credential_type in ["rsa", "ssh"] {
        server.delete("/api/v1/data?name=/a").await;
        let values: [Value; 3] = [
            json!({"private_key": "private"}),
            json!({"public_key": "no key at all"}),
            json!({"public_key": "ssh-rsa AAAA", "private_key": "private"}),
        ];
        for value in values {
            let set = given::set(&server, "/a", credential_type, value.clone()).await;
            assert_outcome(Written, &server, &set, credential_type, &json!({})).await;
        }
    }
}
