//! `POST /api/v1/regenerate`, and the same through `POST /api/v1/data`.

use std::sync::atomic::Ordering;

use axum::http::StatusCode;
use serde_json::json;

use super::{DATA, check};
use crate::harness::Service;

#[tokio::test]
async fn regenerate_works_in_both_forms() {
    let service = Service::new();
    let generate = json!({"name": "/p", "type": "password", "parameters": {"length": 20}});
    check(&service, "POST", DATA, generate, 200).await;
    for (path, body) in [
        (
            "/api/v1/regenerate",
            json!({"name": "p", "metadata": {"a": 1}}),
        ),
        (
            DATA,
            json!({"name": "p", "regenerate": true, "metadata": {"a": 1}}),
        ),
        (
            DATA,
            json!({"name": "p", "regenerate": "true", "type": "password", "metadata": {"a": 1}}),
        ),
    ] {
        let answer = service.send_json("POST", path, &body).await;
        assert_eq!(answer.status, StatusCode::OK, "{body}");
        assert_eq!(answer.json()["value"], json!({"length": 20}));
        assert_eq!(answer.json()["metadata"], json!({"a": 1}));
    }
    let versions = service.get("/api/v1/data?name=p").await.json();
    assert_eq!(versions["data"].as_array().unwrap().len(), 4);
}

#[tokio::test]
async fn a_credential_deleted_meanwhile_is_not_recreated() {
    let service = Service::new();
    for (name, credential_type) in [("/p", "password"), ("/c", "certificate")] {
        let generate = json!({"name": name, "type": credential_type, "parameters": {"length": 20}});
        check(&service, "POST", DATA, generate, 200).await;
        let deleted = &service.memory.is_deleted_before_append;
        deleted.store(true, Ordering::SeqCst);
        let body = json!({"name": name});
        check(&service, "POST", "/api/v1/regenerate", body, 404).await;
        deleted.store(false, Ordering::SeqCst);
        assert_eq!(service.memory.count(), 0);
    }
}

#[tokio::test]
async fn a_recreated_credential_gets_no_version_of_the_old_one() {
    let service = Service::new();
    let generate = json!({"name": "/p", "type": "password", "parameters": {"length": 20}});
    check(&service, "POST", DATA, generate, 200).await;
    let is_anew = &service.memory.is_anew_before_append;
    is_anew.store(true, Ordering::SeqCst);
    let body = json!({"name": "/p"});
    check(&service, "POST", "/api/v1/regenerate", body, 404).await;
    assert_eq!(service.memory.count(), 1);
}

#[tokio::test]
async fn each_error_in_a_regenerate_has_its_status() {
    let service = Service::new();
    let set = json!({"name": "/s", "type": "password", "value": "x"});
    check(&service, "PUT", DATA, set, 200).await;
    let long = json!({"a": "x".repeat(7_000)});
    for (body, by_name, through_data) in [
        (json!({}), 400, 400),
        (json!({"name": null}), 400, 400),
        (json!({"name": ""}), 400, 400),
        (json!({"name": 1}), 400, 400),
        (json!({"name": "absent"}), 404, 404),
        (json!({"name": "s"}), 400, 400),
        (json!({"name": "s", "bogus": 1}), 422, 400),
        (json!({"name": "s", "mode": "overwrite"}), 422, 400),
        (json!({"name": "s", "metadata": long}), 413, 413),
    ] {
        check(
            &service,
            "POST",
            "/api/v1/regenerate",
            body.clone(),
            by_name,
        )
        .await;
        let mut body = body;
        body["regenerate"] = json!(true);
        check(&service, "POST", DATA, body, through_data).await;
    }
}
