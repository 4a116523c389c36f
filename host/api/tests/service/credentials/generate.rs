//! `POST /api/v1/data`.

use axum::http::StatusCode;
use serde_json::{Value, json};

use super::{DATA, check};
use crate::harness::Service;

#[tokio::test]
async fn each_error_in_a_generate_has_its_status() {
    let service = Service::new();
    let long = "x".repeat(7_000);
    for (body, status, named) in [
        (json!({"name": "a"}), 400, "type"),
        (json!({"name": "a", "type": "pgp"}), 400, "type"),
        (json!({"name": "a", "type": "value"}), 400, "value"),
        (
            json!({"name": "a", "type": "json", "parameters": {}}),
            400,
            "json",
        ),
        (json!({"type": "password"}), 400, "name"),
        (json!({"type": "pgp"}), 400, "name"),
        (
            json!({"name": "a", "type": "certificate"}),
            400,
            "parameters",
        ),
        (
            json!({"name": "a", "type": "password", "mode": "OVERWRITE"}),
            400,
            "mode",
        ),
        (
            json!({"name": "a", "type": "password", "mode": 1}),
            400,
            "mode",
        ),
        (
            json!({"name": "a", "type": "password", "overwrite": [null]}),
            400,
            "overwrite",
        ),
        (
            json!({"name": "a", "type": "password", "overwrite": "yes"}),
            400,
            "overwrite",
        ),
        (
            json!({"name": "a", "type": "password", "parameters": []}),
            400,
            "parameters",
        ),
        (
            json!({"name": "a", "type": "password", "bogus": 1}),
            400,
            "bogus",
        ),
        (
            json!({"name": "a", "type": "password", "value": {"username": "x"}}),
            400,
            "value",
        ),
        (
            json!({"name": "a", "type": "user", "value": {"password": "x"}}),
            400,
            "password",
        ),
        (
            json!({"name": "a", "type": "user", "value": "x"}),
            400,
            "value",
        ),
        (
            json!({"name": "a", "type": "password", "regenerate": false}),
            400,
            "regenerate",
        ),
        (
            json!({"name": "a", "type": "password", "parameters": {"fault": "?"}}),
            400,
            "fault",
        ),
        (
            json!({"name": "a", "type": "password", "parameters": {"fault": "trap"}}),
            500,
            "echo",
        ),
        (
            json!({"name": "a", "type": "password", "metadata": {"a": long}}),
            400,
            "metadata",
        ),
    ] {
        let error = check(&service, "POST", DATA, body.clone(), status).await;
        assert!(error.contains(named), "{body}: {error}");
    }
    let full = json!({"name": "a", "type": "password", "parameters": {"fault": "full"}});
    let answer = service.send_json("POST", DATA, &full).await;
    assert_eq!(answer.status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(answer.headers["retry-after"], "3");
}

#[tokio::test]
async fn the_mode_decides_whether_a_version_is_added() {
    let service = Service::new();
    let generate = async |members: Value| {
        let mut body = json!({"name": "p", "type": "password", "parameters": {"length": 20}});
        for (name, value) in members.as_object().unwrap() {
            body[name] = value.clone();
        }
        let answer = service.send_json("POST", DATA, &body).await;
        assert_eq!(answer.status, StatusCode::OK, "{body}: {}", answer.text);
        answer.json()["id"].as_str().unwrap().to_owned()
    };
    let mut newest = generate(json!({})).await;
    for (members, is_written) in [
        (json!({}), false),
        (json!({"mode": null}), false),
        (json!({"mode": "converge"}), false),
        (json!({"mode": "converge", "overwrite": false}), false),
        (json!({"mode": "converge", "overwrite": true}), false),
        (
            json!({"parameters": {"length": 21}, "mode": "no-overwrite"}),
            false,
        ),
        (
            json!({"parameters": {"length": 21}, "overwrite": false}),
            false,
        ),
        (
            json!({"parameters": {"length": 21}, "overwrite": "false"}),
            false,
        ),
        (json!({"parameters": {"length": 21}}), true),
        (json!({"mode": "overwrite"}), true),
        (json!({"mode": "overwrite", "overwrite": false}), true),
        (json!({"overwrite": true}), true),
    ] {
        let id = generate(members.clone()).await;
        assert_eq!(id != newest, is_written, "{members}");
        newest = id;
    }
}

#[tokio::test]
async fn the_user_name_of_the_value_wins_unless_it_is_empty() {
    let service = Service::new();
    for (members, username) in [
        (json!({"value": {"username": "v"}}), json!("v")),
        (
            json!({"value": {"username": "v"}, "parameters": {"username": "p"}}),
            json!("v"),
        ),
        (
            json!({"value": {"username": ""}, "parameters": {"username": "p"}}),
            json!("p"),
        ),
        (
            json!({"value": {"username": ""}, "parameters": {}}),
            Value::Null,
        ),
        (json!({"value": {"username": null}}), Value::Null),
        (json!({"value": null}), Value::Null),
        (json!({}), Value::Null),
    ] {
        let mut body = json!({"name": "u", "type": "User", "mode": "overwrite"});
        for (name, value) in members.as_object().unwrap() {
            body[name] = value.clone();
        }
        let answer = service.send_json("POST", DATA, &body).await;
        assert_eq!(answer.json()["value"]["username"], username, "{body}");
    }
}

#[tokio::test]
async fn a_generated_certificate_has_issuance_fields() {
    let service = Service::new();
    let body = json!({"name": "c", "type": "certificate", "parameters": {"duration": 365}});
    let generated = service.send_json("POST", DATA, &body).await;
    let tail = r#""transitional":false,"certificate_authority":true,"self_signed":true,"generated":true,"expiry_date":"2030-01-01T00:00:00Z","duration_overridden":false,"duration_used":365,"key_length":2048}"#;
    assert!(generated.text.ends_with(tail), "{}", generated.text);
    let read = service.get("/api/v1/data?name=c").await;
    assert!(
        read.text
            .ends_with(r#""expiry_date":"2030-01-01T00:00:00Z"}]}"#)
    );
    let kept = service.send_json("POST", DATA, &body).await;
    assert_eq!(kept.json()["duration_used"], 0);
}
