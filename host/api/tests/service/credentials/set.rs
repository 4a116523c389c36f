//! `PUT /api/v1/data`.

use serde_json::json;

use super::{DATA, check};
use crate::harness::Service;

#[tokio::test]
async fn each_error_in_a_set_has_its_status() {
    let service = Service::new();
    let long = "x".repeat(7_000);
    for (body, status, named) in [
        (
            json!({"name": "a", "value": "x"}),
            422,
            "value, json, certificate",
        ),
        (json!({"name": "a", "type": "", "value": "x"}), 422, "type"),
        (
            json!({"name": "a", "type": null, "value": "x"}),
            422,
            "type",
        ),
        (json!({"name": "a", "type": 1, "value": "x"}), 422, "type"),
        (
            json!({"name": "a", "type": "pgp", "value": "x"}),
            422,
            "type",
        ),
        (json!({"type": "pgp"}), 422, "type"),
        (json!({"name": "a", "type": "value"}), 400, "value"),
        (
            json!({"name": "a", "type": "value", "value": null}),
            400,
            "value",
        ),
        (
            json!({"name": "a", "type": "value", "value": ""}),
            400,
            "value",
        ),
        (
            json!({"name": "a", "type": "value", "value": 1}),
            400,
            "value",
        ),
        (
            json!({"name": "a", "type": "json", "value": []}),
            400,
            "value",
        ),
        (json!({"type": "value", "value": "x"}), 400, "name"),
        (
            json!({"name": "/", "type": "value", "value": "x"}),
            400,
            "name",
        ),
        (
            json!({"name": "a b", "type": "value", "value": "x"}),
            400,
            "name",
        ),
        (
            json!({"name": 1, "type": "value", "value": "x"}),
            400,
            "name",
        ),
        (
            json!({"name": "a", "type": "value", "value": "x", "mode": "overwrite"}),
            422,
            "mode",
        ),
        (
            json!({"name": "a", "type": "value", "value": "x", "overwrite": true}),
            422,
            "overwrite",
        ),
        (
            json!({"name": "a", "type": "value", "value": "x", "parameters": {}}),
            422,
            "parameters",
        ),
        (
            json!({"name": "a", "type": "user", "value": {"bogus": 1}}),
            422,
            "bogus",
        ),
        (
            json!({"name": "a", "type": "certificate", "value": {"bogus": 1}}),
            422,
            "bogus",
        ),
        (
            json!({"name": "a", "type": "value", "value": "x", "metadata": {"a": long}}),
            400,
            "metadata",
        ),
        (
            json!({"name": "a", "type": "value", "value": "x".repeat(65_537)}),
            413,
            "65,536",
        ),
    ] {
        let error = check(&service, "PUT", DATA, body.clone(), status).await;
        assert!(error.contains(named), "{body}: {error}");
    }
}

#[tokio::test]
async fn a_value_keeps_its_numbers() {
    let service = Service::new();
    let body = "{\"name\": \"n\", \"type\": \"json\", \"value\": {\"n\": 12345678901234567890123, \"f\": 1.10}}";
    let set = service.send("PUT", DATA, body).await;
    let value = r#""value":{"n":12345678901234567890123,"f":1.10}"#;
    assert!(set.text.contains(value), "{}", set.text);
    assert!(
        service
            .get("/api/v1/data?name=n")
            .await
            .text
            .contains(value)
    );
}

#[tokio::test]
async fn any_configured_type_is_set_and_generated() {
    let service = Service::new();
    let body = json!({"name": "w", "type": "WireGuard", "value": {"key": 1}});
    check(&service, "PUT", DATA, body, 200).await;
    let generated = service
        .send_json(
            "POST",
            DATA,
            &json!({"name": "g", "type": "wireguard", "parameters": {"a": 1}}),
        )
        .await;
    assert_eq!(generated.json()["value"], json!({"a": 1}));
}

#[tokio::test]
async fn the_type_of_a_credential_cannot_change() {
    let service = Service::new();
    let set = json!({"name": "/s", "type": "value", "value": "x"});
    check(&service, "PUT", DATA, set, 200).await;
    let other = json!({"name": "/s", "type": "password", "value": "x"});
    check(&service, "PUT", DATA, other, 400).await;
    let generate = json!({"name": "/s", "type": "password", "mode": "no-overwrite"});
    check(&service, "POST", DATA, generate, 400).await;
}
