//! A generate with `converge` adds a version only if the stored version has other parameters.

use keywright_harness::Server;
use serde_json::{Value, json};

use Outcome::{Kept, Written};

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
    let response = server.generated("/a", credential_type, parameters.clone());
    outcome(existing, &response.await)
}

fn outcome(existing: &Value, response: &Value) -> Outcome {
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

/// Asserts the outcomes in a table, each followed by the changes of these parameters in the first and in the second generate. The
/// first is omitted if the newest version has its parameters.
pub(super) async fn assert_outcomes(
    server: &Server,
    credential_type: &str,
    base: &Value,
    table: &str,
) {
    server.delete("/api/v1/data?name=/a").await;
    let (mut parameters, mut newest) = (Value::Null, Value::Null);
    for row in table.trim().lines() {
        let (expected, changes) = row.trim().split_once(' ').unwrap();
        let (first, then) = changes.split_once(" then ").unwrap();
        let [first, then] =
            [first, then].map(|changes| with(base, &serde_json::from_str(changes).unwrap()));
        if parameters != first {
            let made = server.generate_in_mode("overwrite", "/a", credential_type, first.clone());
            newest = made.await.expect(200).json();
        }
        let response = server.generated("/a", credential_type, then.clone()).await;
        let became = outcome(&newest, &response);
        assert_eq!(format!("{became:?}"), expected, "{credential_type}: {row}");
        (parameters, newest) = match became {
            Kept => (first, newest),
            Written => (then, response),
        };
    }
}

#[tokio::test]
async fn the_newest_version_is_compared() {
    let server = Server::reused().await;
    let (short, long) = (json!({"length": 10}), json!({"length": 50}));
    let became = converge(&server, "password", &short, &long).await;
    assert_eq!(became, Written);
    let became = converge(&server, "password", &short, &short).await;
    assert_eq!(became, Kept);
    server.stored("/a", "password", json!("mine")).await;
    let before = server.versions("/a").await[0].clone();
    assert_outcome(Written, &server, &before, "password", &short).await;
}

// Comparison of parameters.

const OF_PASSWORDS: &str = r#"
    Kept {} then {}
    Kept {} then {"length": 30, "exclude_upper": false, "exclude_lower": false, "exclude_number": false, "include_special": false}
    Kept {"length": 30, "exclude_upper": false, "exclude_lower": false, "exclude_number": false, "include_special": false} then {}
    Kept {"length": 30} then {"length": "30"}
    Written {"length": 20} then {}
    Written {} then {"length": 31, "exclude_upper": false, "exclude_lower": false, "exclude_number": false, "include_special": false}
    Written {} then {"length": 30, "exclude_upper": true, "exclude_lower": false, "exclude_number": false, "include_special": false}
    Written {} then {"length": 30, "exclude_upper": false, "exclude_lower": true, "exclude_number": false, "include_special": false}
    Written {} then {"length": 30, "exclude_upper": false, "exclude_lower": false, "exclude_number": true, "include_special": false}
    Written {} then {"length": 30, "exclude_upper": false, "exclude_lower": false, "exclude_number": false, "include_special": true}
    Written {"include_special": true} then {}
"#;

const OF_USERNAMES: &str = r#"
    Kept {"username": "ada"} then {"username": "ada"}
    Written {"username": "ada"} then {"username": "grace"}
    Written {"username": "ada"} then {"username": "Ada"}
    Written {"username": "ada"} then {}
    Written {} then {"username": "ada"}
    Kept {} then {}
    Kept {} then {"username": ""}
"#;

const OF_KEYS: &str = r#"
    Kept {} then {}
    Kept {} then {"key_length": 2048}
    Kept {"key_length": 3072} then {"key_length": "3072"}
    Written {"key_length": 3072} then {}
    Written {} then {"key_length": 3072}
"#;

const OF_COMMENTS: &str = r#"
    Kept {"ssh_comment": "ada"} then {"ssh_comment": "ada"}
    Written {"ssh_comment": "ada"} then {"ssh_comment": "grace"}
    Written {"ssh_comment": "ada"} then {"ssh_comment": ""}
    Kept {"ssh_comment": ""} then {}
    Written {"ssh_comment": "ada"} then {}
    Kept {} then {"ssh_comment": ""}
    Written {} then {"ssh_comment": "ada"}
"#;

#[tokio::test]
async fn every_parameter_is_compared_and_defaults_equal_absence() {
    let server = Server::reused().await;
    for (credential_type, table) in [
        ("password", OF_PASSWORDS),
        ("user", OF_PASSWORDS),
        ("user", OF_USERNAMES),
        ("rsa", OF_KEYS),
        ("ssh", OF_KEYS),
        ("ssh", OF_COMMENTS),
    ] {
        assert_outcomes(&server, credential_type, &json!({}), table).await;
    }
}

#[tokio::test]
async fn a_set_password_always_differs() {
    let server = Server::reused().await;
    let thirty_letters = "abcdefghijABCDEFGHIJ0123456789";
    let set = server.stored("/a", "password", json!(thirty_letters)).await;
    assert_outcome(Written, &server, &set, "password", &json!({})).await;
    let made = server.versions("/a").await[0].clone();
    assert_outcome(Kept, &server, &made, "password", &json!({})).await;
}

#[tokio::test]
async fn a_regenerated_password_still_has_its_parameters() {
    let server = Server::reused().await;
    let parameters = json!({"length": 12, "include_special": true});
    server.generated("/a", "password", parameters.clone()).await;
    let regenerated = server.regenerated("/a").await;
    assert_outcome(Kept, &server, &regenerated, "password", &parameters).await;
}

// Users: differences from passwords.

#[tokio::test]
async fn requesting_the_generated_username_adds_a_version() {
    let server = Server::reused().await;
    let made = server.generated("/a", "user", json!({})).await;
    let requested = json!({"username": made["value"]["username"]});
    assert_outcome(Written, &server, &made, "user", &requested).await;
}

#[tokio::test]
async fn the_deprecated_username_field_is_compared_too() {
    let server = Server::reused().await;
    let body = json!({"name": "/a", "type": "user", "value": {"username": "ada"}});
    let made = server.post("/api/v1/data", body.clone()).await;
    let made = made.expect(200).json();
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
async fn a_set_key_is_kept_if_it_matches_the_parameters() {
    let server = Server::reused().await;
    let comment = |comment: &str| json!({"ssh_comment": comment});
    for (credential_type, parameters, other) in [
        ("rsa", json!({}), json!({"key_length": 3072})),
        ("rsa", json!({"key_length": 3072}), json!({})),
        ("ssh", json!({}), comment("ada")),
        ("ssh", comment("ada on host"), comment("ada")),
    ] {
        let made = server.generated("/made", credential_type, parameters.clone());
        let value = made.await["value"].clone();
        let blank_line = format!("{}\n", value["public_key"].as_str().unwrap());
        for value in [value, json!({"public_key": blank_line})] {
            let set = server.stored("/a", credential_type, value).await;
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
            let set = server.stored("/a", credential_type, value.clone()).await;
            assert_outcome(Written, &server, &set, credential_type, &json!({})).await;
        }
    }
}
