//! Events of permission changes.

use keywright_harness::Server;
use reqwest::Method;
use serde_json::{Value, json};

use super::events_of;

const UNKNOWN: &str = "/api/v2/permissions/0b7f1c52-6f5e-4d43-8f0d-0d5c3c1b9a77";

/// A body of the older interface that grants read and write to these actors.
fn granting(actors: &[String]) -> Value {
    let entries = actors
        .iter()
        .map(|actor| json!({"path": "/a", "actor": actor, "operations": ["read", "write"]}));
    json!({"credential_name": "/a", "permissions": entries.collect::<Vec<_>>()})
}

#[tokio::test]
async fn each_of_a_hundred_grants_in_one_request_is_audited_in_full() {
    let server = Server::start().await;
    let actors = (0..100).map(|number| format!("{number:03}{}", "\u{10348}".repeat(252)));
    let actors: Vec<String> = actors.collect();
    let stranger = server.as_client("stranger").await;
    let refused = stranger
        .post("/api/v1/permissions", granting(&actors))
        .await;
    let granted = server.post("/api/v1/permissions", granting(&actors)).await;
    for (answer, status, is_identified) in [(refused, 404, false), (granted, 201, true)] {
        assert_eq!(answer.status, status, "{}", answer.body);
        let events = events_of(&server, &answer);
        assert_eq!(events.len(), actors.len());
        for (event, actor) in events.iter().zip(&actors) {
            let details = json!({"actor": actor, "operations": ["read", "write"]});
            assert_eq!(event["request_details"], details);
            assert_eq!(event["action"], "ADD_PERMISSIONS");
            assert_eq!(event["operation"], "write_acl");
            assert_eq!(event["resource_name"], "/a");
            assert_eq!(event["resource_id"].is_string(), is_identified);
        }
    }
}

#[tokio::test]
async fn permission_changes_are_audited_with_actor_and_operations() {
    let server = Server::start().await;
    let id = server.grant("/a", "someone", &["read"]).await;
    let one = format!("/api/v2/permissions/{id}");
    let by_credential = "/api/v1/permissions?credential_name=/a&actor=someone";
    let body =
        |operations: &[&str]| json!({"path": "/a", "actor": "someone", "operations": operations});
    let reported = |operations: &[&str]| json!({"actor": "someone", "operations": operations});
    let write = json!({"operations": ["write"]});
    let (patch, put, delete) = (Method::PATCH, Method::PUT, Method::DELETE);
    let post = Method::POST;
    let all = "/api/v2/permissions";
    for (method, path, body, status, details) in [
        (
            &patch,
            one.as_str(),
            write.clone(),
            200,
            reported(&["write"]),
        ),
        (
            &put,
            &one,
            body(&["read", "delete"]),
            200,
            reported(&["read", "delete"]),
        ),
        (&post, all, body(&["write"]), 409, reported(&["write"])),
        (
            &delete,
            &one,
            Value::Null,
            200,
            reported(&["read", "delete"]),
        ),
        (
            &delete,
            by_credential,
            Value::Null,
            404,
            json!({"actor": "someone"}),
        ),
        (&post, all, body(&["read"]), 201, reported(&["read"])),
        (
            &delete,
            by_credential,
            Value::Null,
            204,
            reported(&["read"]),
        ),
        (&patch, UNKNOWN, write.clone(), 404, write.clone()),
        (&put, UNKNOWN, body(&["read"]), 404, reported(&["read"])),
        (&delete, UNKNOWN, Value::Null, 404, Value::Null),
    ] {
        let mut request = server.authorized(method.clone(), path);
        if !body.is_null() {
            request = request.body(body.to_string());
        }
        let answer = server.send(request).await;
        let what = format!("{method} {path} {body}: {}", answer.body);
        assert_eq!(answer.status, status, "{what}");
        let events = events_of(&server, &answer);
        assert_eq!(events.len(), 1, "{what}");
        assert_eq!(events[0]["request_details"], details, "{what}");
    }
}
