//! The actor that chose the inputs of a derived value, and bulk regenerations after it lost the permission to read them.

use keywright_harness::{Caller, Options, Server};
use serde_json::{Value, json};

use crate::inputs::{BULK_REGENERATE, TYPE, generated, server, set};

/// Returns the regenerated credentials, and the failed credentials with their errors.
async fn keep_going(server: &Server, mut selection: Value) -> [Value; 2] {
    selection["keep_going"] = json!(true);
    let response = server.post(BULK_REGENERATE, selection).await;
    let mut done = response.expect(200).json();
    ["regenerated_credentials", "failed_credentials"].map(|field| done[field].take())
}

fn failed(name: &str) -> Value {
    json!([{"name": name, "error": INPUTS_FORBIDDEN}])
}

const INPUTS_FORBIDDEN: &str = "the credential can't be regenerated: the actor that chose its parameters may no longer read \
    all of its inputs; check who may read the credential, then delete it or regenerate it alone";

/// Returns a client that may read `/db/Root`, in both casings, and write below `/mine`; and the ids of the permissions to read.
async fn spy(server: &Server) -> (Caller, [String; 2]) {
    let spy = server.as_client("spy").await;
    server
        .grant("/mine/*", spy.actor(), &["read", "write"])
        .await;
    let requested = server.grant("/db/root", spy.actor(), &["read"]).await;
    let stored = server.grant("/db/Root", spy.actor(), &["read"]).await;
    (spy, [requested, stored])
}

async fn derive(caller: &Caller, name: &str) {
    let body = json!({
        "name": name,
        "type": TYPE,
        "parameters": {"from": "/db/root"},
        "mode": "overwrite",
    });
    caller.post("/api/v1/data", body).await.expect(200);
}

#[tokio::test]
async fn bulk_regeneration_fails_if_the_deriving_actor_lost_its_input() {
    let server = server().await;
    let (spy, permissions) = spy(&server).await;
    set(&server, "/db/Root", "first").await;
    derive(&spy, "/mine/spy").await;
    generated(&server, "/db/url", json!({"from": "/db/root"})).await;
    let derived = json!({"derived_from": "/db/root"});
    // The actor stays recorded when another actor regenerates the credential in bulk.
    set(&server, "/db/Root", "second").await;
    let [all, none] = keep_going(&server, derived.clone()).await;
    assert_eq!([all, none], [json!(["/db/url", "/mine/spy"]), json!([])]);

    for (permission, path) in permissions.iter().zip(["/db/root", "/db/Root"]) {
        server.revoke(permission).await;
        set(&server, "/db/Root", "third").await;
        for is_dry_run in [true, false] {
            let body = json!({"derived_from": "/db/root", "dry_run": is_dry_run});
            let response = server.post(BULK_REGENERATE, body).await.expect(400);
            let error = "no credential was regenerated, because regenerating /mine/spy failed: ";
            assert_eq!(response.error(), format!("{error}{INPUTS_FORBIDDEN}"));
        }
        let before = server.versions("/db/url").await.len();
        let [regenerated, failures] = keep_going(&server, derived.clone()).await;
        assert_eq!(regenerated, json!(["/db/url"]), "{path}");
        assert_eq!(failures, failed("/mine/spy"), "{path}");
        assert_eq!(server.versions("/db/url").await.len(), before + 1);
        assert_eq!(server.versions("/mine/spy").await.len(), 2);
        server.grant(path, spy.actor(), &["read"]).await;
    }
    let [regenerated, _] = keep_going(&server, derived).await;
    assert_eq!(regenerated, json!(["/mine/spy"]));
}

#[tokio::test]
async fn regenerating_alone_records_the_caller_as_the_deriving_actor() {
    let server = server().await;
    let (spy, [permission, _]) = spy(&server).await;
    set(&server, "/db/Root", "first").await;
    derive(&spy, "/mine/a").await;
    server.revoke(&permission).await;
    server.regenerated("/mine/a").await;
    set(&server, "/db/Root", "second").await;
    let [regenerated, _] = keep_going(&server, json!({"derived_from": "/db/root"})).await;
    assert_eq!(regenerated, json!(["/mine/a"]));
}

#[tokio::test]
async fn imported_inputs_are_those_of_the_importing_actor() {
    let server = server().await;
    let (spy, [permission, _]) = spy(&server).await;
    set(&server, "/db/Root", "first").await;
    let digest = "0".repeat(64);
    let body = json!({
        "name": "/mine/spy",
        "type": TYPE,
        "value": {"inputs": [], "salt": "s"},
        "generated_by": digest,
        "parameters": {"from": "/db/root"},
    });
    spy.put("/api/v1/data", body).await.expect(200);
    server.revoke(&permission).await;
    let [_, failures] = keep_going(&server, json!({"generated_by": digest})).await;
    assert_eq!(failures, failed("/mine/spy"));
}

#[tokio::test]
async fn without_enforcement_every_actor_may_read_the_inputs() {
    let options = Options::default().generator_with_inputs(TYPE);
    let server = Server::start_with(&options.without_enforcement()).await;
    set(&server, "/db/Root", "first").await;
    derive(&server.as_client("spy").await, "/mine/a").await;
    set(&server, "/db/Root", "second").await;
    let [regenerated, _] = keep_going(&server, json!({"derived_from": "/db/root"})).await;
    assert_eq!(regenerated, json!(["/mine/a"]));
}
