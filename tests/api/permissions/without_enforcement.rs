//! Permissions are stored even if they are not enforced.

use keywright_harness::{Caller, Options, Server};
use reqwest::Method;
use serde_json::{Value, json};

use super::{
    ALL, BY_CREDENTIAL, PERMISSIONS, UNKNOWN_ID, address, on_credential, permission, query, send,
};
use crate::given::set_value;

#[tokio::test]
async fn every_caller_may_change_permissions_even_its_own() {
    let server = Server::start_with(&Options::default().without_enforcement()).await;
    set_value(&server, "/a", "x").await;
    let caller = server.as_client("stranger").await;
    for actor in ["other", caller.actor()] {
        let added = caller.post(PERMISSIONS, permission("/a", actor, &["read"]));
        let added = added.await.expect(201).json();
        let one = address(added["uuid"].as_str().unwrap());
        let whole = permission("/a", actor, &["write"]);
        let by_name = format!("{BY_CREDENTIAL}?credential_name=/a");
        for (method, path, body, status) in [
            (Method::GET, one.clone(), Value::Null, 200),
            (Method::GET, query("/a", actor), Value::Null, 200),
            (Method::PUT, one.clone(), whole, 200),
            (Method::PATCH, one.clone(), json!({"operations": ALL}), 200),
            (Method::DELETE, one, Value::Null, 200),
            (
                Method::POST,
                BY_CREDENTIAL.to_owned(),
                on_credential("/a", actor, &["read"]),
                201,
            ),
            (Method::GET, by_name.clone(), Value::Null, 200),
            (
                Method::DELETE,
                format!("{by_name}&actor={actor}"),
                Value::Null,
                204,
            ),
        ] {
            let answer = send(&caller, &method, &path, &body).await;
            assert_eq!(answer.status, status, "{actor} {method} {path}: {answer:?}");
        }
    }
}

#[tokio::test]
async fn absent_is_not_found_and_existing_is_not_added() {
    let server = Server::start_with(&Options::default().without_enforcement()).await;
    let caller = server.as_client("stranger").await;
    let whole = permission("/a", "other", &["read"]);
    let by_name = format!("{BY_CREDENTIAL}?credential_name=/a");
    for (method, path, body) in [
        (Method::GET, address(UNKNOWN_ID), Value::Null),
        (Method::GET, query("/a", "other"), Value::Null),
        (Method::PUT, address(UNKNOWN_ID), whole.clone()),
        (
            Method::PATCH,
            address(UNKNOWN_ID),
            json!({"operations": ["read"]}),
        ),
        (Method::DELETE, address(UNKNOWN_ID), Value::Null),
        (Method::GET, by_name.clone(), Value::Null),
        (
            Method::DELETE,
            format!("{by_name}&actor=other"),
            Value::Null,
        ),
    ] {
        let answer = send(&caller, &method, &path, &body).await;
        assert_eq!(answer.status, 404, "{method} {path}: {answer:?}");
    }
    caller.post(PERMISSIONS, whole.clone()).await.expect(201);
    caller.post(PERMISSIONS, whole).await.expect(409);
    let body = on_credential("/a", "other", &["read"]);
    caller.post(BY_CREDENTIAL, body).await.expect(409);
}

#[tokio::test]
async fn an_explanation_has_enforced_false_and_the_missing_grant() {
    let server = Server::start_with(&Options::default().without_enforcement()).await;
    let caller = server.as_client("stranger").await;
    let explained = explain(&caller).await;
    assert_eq!(explained["enforced"], false);
    assert_eq!(explained["allowed"], true);
    assert_eq!(explained["allowed_by"], Value::Null);
    let needed = permission("/a", "other", &["read"]);
    assert_eq!(explained["missing"]["permission"], needed);
    server.grant("/*", "other", &["read"]).await;
    let explained = explain(&caller).await;
    assert_eq!(explained["allowed_by"]["path"], "/*");
    assert_eq!(explained["missing"], Value::Null);
}

async fn explain(caller: &Caller) -> Value {
    let asked = "/api/v2/permissions/explain?path=/a&actor=other&operation=read";
    caller.get(asked).await.expect(200).json()
}
