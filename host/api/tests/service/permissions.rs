//! Permissions: the statuses and the bodies of each verb.

use std::sync::atomic::Ordering;

use axum::http::StatusCode;
use serde_json::{Value, json};

use crate::harness::{Answer, Service};

const V1: &str = "/api/v1/permissions";
const V2: &str = "/api/v2/permissions";

/// The actor of the requests.
const CALLER: &str = "uaa-client:app";

#[tokio::test]
async fn each_verb_returns_the_permission() {
    let service = Service::new();
    let operations = json!(["write", "read", "write"]);
    let body = json!({"path": "a", "actor": "someone", "operations": operations});
    let added = send(&service, "POST", V2, &body, 201).await;
    assert_eq!(
        added.headers["content-type"],
        "application/json;charset=UTF-8"
    );
    let permission = added.json();
    let uuid = permission["uuid"].as_str().unwrap();
    let expected = |operations: Value| json!({"uuid": uuid, "path": "/a", "actor": "someone", "operations": operations});
    assert_eq!(permission, expected(json!(["read", "write"])));
    let names: Vec<_> = permission.as_object().unwrap().keys().collect();
    assert_eq!(names, ["uuid", "path", "actor", "operations"]);
    let one = format!("{V2}/{uuid}");
    let by_query = format!("{V2}?path=a&actor=someone");
    let whole = json!({"path": "/a", "actor": "someone", "operations": ["delete"]});
    for (method, path, body, operations) in [
        ("GET", &one, json!(""), json!(["read", "write"])),
        ("GET", &by_query, json!(""), json!(["read", "write"])),
        ("PUT", &one, whole, json!(["delete"])),
        (
            "PATCH",
            &one,
            json!({"operations": ["read_acl"]}),
            json!(["read_acl"]),
        ),
        ("DELETE", &one, json!(""), json!(["read_acl"])),
    ] {
        let answer = send(&service, method, path, &body, 200).await;
        assert_eq!(answer.json(), expected(operations), "{method}");
    }
    send(&service, "GET", &one, &json!(""), 404).await;
}

#[tokio::test]
async fn a_concurrently_deleted_permission_is_not_found() {
    let whole = json!({"path": "/a", "actor": "someone", "operations": ["read"]});
    for (method, body) in [
        ("PUT", whole.clone()),
        ("PATCH", json!({"operations": ["read"]})),
        ("DELETE", json!("")),
    ] {
        let service = Service::new();
        let added = send(&service, "POST", V2, &whole, 201).await.json();
        let path = format!("{V2}/{}", added["uuid"].as_str().unwrap());
        let switch = &service.permissions.is_deleted_before_change;
        switch.store(true, Ordering::SeqCst);
        send(&service, method, &path, &body, 404).await;
    }
}

#[tokio::test]
async fn the_older_interface_returns_lists_and_empty_bodies() {
    let service = Service::new();
    let value = json!({"name": "a", "type": "value", "value": "x"});
    send(&service, "PUT", "/api/v1/data", &value, 200).await;
    let entry = json!({"path": "a", "actor": "someone", "operations": ["write", "read"]});
    let body = json!({"credential_name": "/a", "permissions": [entry]});
    let added = send(&service, "POST", V1, &body, 201).await;
    assert_eq!(added.text, "");
    send(&service, "POST", V1, &body, 409).await;
    let list = format!("{V1}?credential_name=a");
    let listed = send(&service, "GET", &list, &json!(""), 200).await;
    let entry = json!({"actor": "someone", "path": "/a", "operations": ["read", "write"]});
    let expected = json!({"credential_name": "/a", "permissions": [entry]});
    assert_eq!(listed.json(), expected);
    let one = format!("{list}&actor=someone");
    let deleted = send(&service, "DELETE", &one, &json!(""), 204).await;
    assert_eq!(deleted.text, "");
    send(&service, "DELETE", &one, &json!(""), 404).await;
    let listed = send(&service, "GET", &list, &json!(""), 200).await;
    assert_eq!(listed.json()["permissions"], json!([]));
}

#[tokio::test]
async fn actors_cannot_change_their_own_permissions() {
    let service = Service::new();
    let by_query = format!("{V2}?path=/*&actor={CALLER}");
    let own = service.get(&by_query).await.json();
    let one = format!("{V2}/{}", own["uuid"].as_str().unwrap());
    let entry = json!({"path": "/a", "actor": CALLER, "operations": ["read"]});
    let whole = json!({"path": "/*", "actor": CALLER, "operations": ["read"]});
    let by_credential = json!({"credential_name": "/a", "permissions": [entry]});
    let from_credential = format!("{V1}?credential_name=/*&actor={CALLER}");
    for (method, path, body) in [
        ("POST", V2, &entry),
        ("PUT", &one, &whole),
        ("PATCH", &one, &json!({"operations": ["read"]})),
        ("DELETE", &one, &json!("")),
        ("POST", V1, &by_credential),
        ("DELETE", &from_credential, &json!("")),
    ] {
        send(&service, method, path, body, 400).await;
    }
    assert_eq!(service.get(&by_query).await.json(), own);
}

async fn send(service: &Service, method: &str, path: &str, body: &Value, status: u16) -> Answer {
    let answer = service.send_json(method, path, body).await;
    assert_eq!(
        answer.status,
        StatusCode::from_u16(status).unwrap(),
        "{method} {path} {body}: {}",
        answer.text
    );
    answer
}
