//! Passwords.

use keywright_harness::Server;
use serde_json::json;

use super::{Outcome, converge, converge_from, with};

#[tokio::test]
async fn every_parameter_counts_and_defaults_equal_their_absence() {
    let server = Server::start().await;
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
            (json!({}), json!({}), Outcome::Kept),
            (json!({}), defaults.clone(), Outcome::Kept),
            (defaults.clone(), json!({}), Outcome::Kept),
            (
                json!({"length": 30}),
                json!({"length": "30"}),
                Outcome::Kept,
            ),
            (json!({"length": 20}), json!({}), Outcome::Written),
            (
                json!({}),
                with(&defaults, &json!({"length": 31})),
                Outcome::Written,
            ),
            (
                json!({}),
                with(&defaults, &json!({"exclude_upper": true})),
                Outcome::Written,
            ),
            (
                json!({}),
                with(&defaults, &json!({"exclude_lower": true})),
                Outcome::Written,
            ),
            (
                json!({}),
                with(&defaults, &json!({"exclude_number": true})),
                Outcome::Written,
            ),
            (
                json!({}),
                with(&defaults, &json!({"include_special": true})),
                Outcome::Written,
            ),
            (
                json!({"include_special": true}),
                json!({}),
                Outcome::Written,
            ),
        ] {
            let became = converge(&server, credential_type, &first, &then).await;
            assert_eq!(became, outcome, "{credential_type}: {first}, then {then}");
        }
    }
}

#[tokio::test]
async fn a_set_password_always_differs() {
    let server = Server::start().await;
    let thirty_letters = "abcdefghijABCDEFGHIJ0123456789";
    let set = server
        .set("/a", "password", json!(thirty_letters))
        .await
        .expect(200)
        .json();
    assert_eq!(
        converge_from(&server, &set, "password", &json!({})).await,
        Outcome::Written
    );
    let made = server.versions("/a").await[0].clone();
    assert_eq!(
        converge_from(&server, &made, "password", &json!({})).await,
        Outcome::Kept
    );
}

#[tokio::test]
async fn a_regenerated_password_still_has_its_parameters() {
    let server = Server::start().await;
    let parameters = json!({"length": 12, "include_special": true});
    server
        .generate("/a", "password", parameters.clone())
        .await
        .expect(200);
    let regenerated = server.regenerate("/a").await.expect(200).json();
    let became = converge_from(&server, &regenerated, "password", &parameters).await;
    assert_eq!(became, Outcome::Kept);
}
