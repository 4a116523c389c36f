//! The actor that chose the inputs of a derived value, and bulk regenerations after it lost the permission to read them.

use std::fs;

use keywright_harness::{Caller, Options, Server, release};
use serde_json::{Value, json};
use tempfile::TempDir;

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
    all of its inputs; check who may read the credential, then delete it, or regenerate it by its name";

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

/// Imports a credential that this plugin derived from `/db/root`.
async fn import(caller: &Caller, name: &str, digest: &str) {
    let body = json!({
        "name": name,
        "type": TYPE,
        "value": {"inputs": [], "salt": "s"},
        "generated_by": digest,
        "parameters": {"from": "/db/root"},
    });
    caller.put("/api/v1/data", body).await.expect(200);
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
    import(&spy, "/mine/spy", &digest).await;
    server.revoke(&permission).await;
    let [_, failures] = keep_going(&server, json!({"generated_by": digest})).await;
    assert_eq!(failures, failed("/mine/spy"));
}

#[tokio::test]
async fn names_that_a_later_release_reads_are_those_of_their_actor() {
    let folder = TempDir::new().unwrap();
    let older = folder.path().join("older.wasm");
    fs::write(&older, release(TYPE, ("release: 2", "release: 1"))).unwrap();
    let section = format!(
        "component = \"{}\"\ngrants = [\"random\", \"inputs\"]",
        older.display()
    );
    let server = Server::start_with(&Options::default().generator(TYPE, &section)).await;
    set(&server, "/db/Root", "canary-of-an-input").await;
    let spy = server.as_client("spy").await;
    server
        .grant("/mine/*", spy.actor(), &["read", "write"])
        .await;
    derive(&spy, "/mine/generated").await;
    let imported_by = "0".repeat(64);
    import(&spy, "/mine/imported", &imported_by).await;
    let path = "/api/v1/data?current=true&provenance=true&name=/mine/generated";
    let generated_by = server.get_json(path).await["data"][0]["generated_by"].take();

    let newer = Options::default().generator_with_inputs(TYPE);
    let server = Server::start_in(server.stop().await, &newer).await;
    for (digest, name) in [
        (generated_by, "/mine/generated"),
        (json!(imported_by), "/mine/imported"),
    ] {
        let [_, failures] = keep_going(&server, json!({"generated_by": digest})).await;
        assert_eq!(failures, failed(name));
    }
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
