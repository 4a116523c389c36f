//! State that survives a restart.

use keywright_harness::{Options, Server};
use serde_json::{Value, json};

use crate::given;

#[tokio::test]
async fn everything_survives_a_restart() {
    let server = Server::start().await;
    let stored = store_every_type(&server).await;
    let directory = server.stop().await;
    let restarted = Server::start_in(directory, &Options::default()).await;
    assert_eq!(given::everything(&restarted).await, stored);
}

#[tokio::test]
async fn acknowledged_writes_survive_a_kill() {
    let server = Server::start().await;
    let mut stored = store_every_type(&server).await;
    for number in 0..20 {
        let version = given::set_value(&server, "/last", &number.to_string()).await;
        stored.insert(0, version);
    }
    let directory = server.kill();
    let restarted = Server::start_in(directory, &Options::default()).await;
    assert_eq!(given::everything(&restarted).await, stored);
}

#[tokio::test]
async fn deleted_credentials_stay_deleted_after_a_kill() {
    let server = Server::start().await;
    let version = given::set_value(&server, "/a", "v").await;
    server.delete("/api/v1/data?name=/a").await.expect(204);
    let restarted = Server::start_in(server.kill(), &Options::default()).await;
    restarted.get("/api/v1/data?name=/a").await.expect(404);
    restarted
        .get(&format!("/api/v1/data/{}", given::id(&version)))
        .await
        .expect(404);
    assert!(given::found(&restarted, "path=").await.is_empty());
}

#[tokio::test]
async fn a_restarted_server_continues_with_the_stored_state() {
    let server = Server::start().await;
    let parameters = json!({"length": 17});
    let generated = given::generate(&server, "/p", "password", parameters.clone()).await;
    let restarted = Server::start_in(server.stop().await, &Options::default()).await;
    let converged = given::generate(&restarted, "/p", "password", parameters).await;
    assert_eq!(converged["id"], generated["id"]);
    let body = json!({"name": "/p"});
    let regenerated = restarted
        .post("/api/v1/regenerate", body)
        .await
        .expect(200)
        .json();
    assert_eq!(regenerated["value"].as_str().unwrap().len(), 17);
    let ids: Vec<String> = given::versions(&restarted, "/p")
        .await
        .iter()
        .map(given::id)
        .collect();
    assert_eq!(ids, [given::id(&regenerated), given::id(&generated)]);
}

/// Stores credentials of every type, and returns all stored versions.
async fn store_every_type(server: &Server) -> Vec<Value> {
    let certificate = json!({"common_name": "c", "self_sign": true});
    given::set_value(server, "/value", "old").await;
    given::set_value(server, "/value", "new").await;
    given::set(server, "/json", "json", json!({"k": [1, "ä"]})).await;
    for (credential_type, parameters) in [
        ("password", json!({})),
        ("user", json!({})),
        ("rsa", json!({})),
        ("ssh", json!({})),
        ("certificate", certificate),
    ] {
        given::generate(
            server,
            &format!("/{credential_type}"),
            credential_type,
            parameters,
        )
        .await;
    }
    given::everything(server).await
}
