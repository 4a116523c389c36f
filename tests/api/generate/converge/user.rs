//! Users: differences from passwords.

use keywright_harness::Server;
use serde_json::json;

use super::{Outcome, converge, converge_from};

#[tokio::test]
async fn the_requested_name_counts() {
    let server = Server::start().await;
    let (ada, grace) = (json!({"username": "ada"}), json!({"username": "grace"}));
    for (first, then, outcome) in [
        (&ada, &ada, Outcome::Kept),
        (&ada, &grace, Outcome::Written),
        (&ada, &json!({"username": "Ada"}), Outcome::Written),
        (&ada, &json!({}), Outcome::Written),
        (&json!({}), &ada, Outcome::Written),
        (&json!({}), &json!({}), Outcome::Kept),
        (&json!({}), &json!({"username": ""}), Outcome::Kept),
    ] {
        assert_eq!(
            converge(&server, "user", first, then).await,
            outcome,
            "{first}, then {then}"
        );
    }
}

#[tokio::test]
async fn a_generated_name_is_not_a_parameter() {
    let server = Server::start().await;
    let made = server
        .generate("/a", "user", json!({}))
        .await
        .expect(200)
        .json();
    let asked_for = json!({"username": made["value"]["username"]});
    assert_eq!(
        converge_from(&server, &made, "user", &asked_for).await,
        Outcome::Written
    );
}

#[tokio::test]
async fn the_deprecated_username_field_counts_alike() {
    let server = Server::start().await;
    let body = json!({"name": "/a", "type": "user", "value": {"username": "ada"}});
    let made = server
        .post("/api/v1/data", body.clone())
        .await
        .expect(200)
        .json();
    let same = converge_from(&server, &made, "user", &json!({"username": "ada"})).await;
    assert_eq!(same, Outcome::Kept);
    let again = server.post("/api/v1/data", body).await.expect(200).json();
    assert_eq!(again["id"], made["id"]);
}

#[tokio::test]
async fn a_set_user_always_differs() {
    let server = Server::start().await;
    let value = json!({"username": "ada", "password": "abcdefghijABCDEFGHIJ0123456789"});
    let set = server.set("/a", "user", value).await.expect(200).json();
    let same_name = json!({"username": "ada"});
    assert_eq!(
        converge_from(&server, &set, "user", &same_name).await,
        Outcome::Written
    );
}

#[tokio::test]
async fn after_a_regenerate_the_name_is_a_parameter() {
    let server = Server::start().await;
    server.generate("/a", "user", json!({})).await.expect(200);
    let regenerated = server.regenerate("/a").await.expect(200).json();
    let with_name = json!({"username": regenerated["value"]["username"]});
    assert_eq!(
        converge_from(&server, &regenerated, "user", &with_name).await,
        Outcome::Kept
    );
    assert_eq!(
        converge_from(&server, &regenerated, "user", &json!({})).await,
        Outcome::Written
    );
}
