//! How exported certificates refer to their CA.

use keywright_harness::{Server, Shell};
use serde_json::{Value, json};

#[tokio::test]
async fn a_certificate_refers_to_a_stored_ca_by_name() {
    let server = server().await;
    let entries = exported(&server);
    let leaf = &entries["/leaf"];
    assert_eq!(leaf["ca_name"], json!("/ca"));
    assert!(leaf.get("ca").is_none());
    let ca = &entries["/ca"];
    assert_eq!(ca["ca"], ca["certificate"]);
    assert!(ca.get("ca_name").is_none());
}

#[tokio::test]
async fn certificates_of_an_old_or_deleted_ca_contain_the_ca() {
    let server = server().await;
    let before = exported(&server);
    server.regenerate("/ca").await.expect(200);
    let entries = exported(&server);
    assert_eq!(entries["/leaf"]["ca"], before["/ca"]["certificate"]);
    assert!(entries["/leaf"].get("ca_name").is_none());
    let run = Shell::of(&server).run(&["export"]).expect(0);
    assert!(
        run.errors
            .contains("/leaf was not signed by the active version of /ca"),
        "{run:?}"
    );

    server.regenerate("/leaf").await.expect(200);
    let entries = exported(&server);
    assert_eq!(entries["/leaf"]["ca_name"], json!("/ca"));
    server.delete("/api/v1/data?name=/ca").await.expect(204);
    let leaf = exported(&server)["/leaf"].clone();
    assert_eq!(leaf["ca"], entries["/ca"]["certificate"]);
    assert!(leaf.get("ca_name").is_none());
}

#[tokio::test]
async fn certificates_of_an_unreadable_ca_contain_the_ca() {
    let server = server().await;
    let app = server.as_client("app").await;
    server.grant("/leaf", app.actor(), &["read"]).await;
    let shell = Shell::at(&server).variable("KEYWRIGHT_CLIENT_TOKEN", app.token());
    let run = shell.run(&["export", "--format", "json"]).expect(0);
    let message = "/leaf was signed by /ca, which does not exist or is hidden from you";
    assert!(run.errors.contains(message), "{run:?}");
    assert!(
        run.errors
            .contains("exported 1 credentials, 0 failed, 1 without ca_name"),
        "{run:?}"
    );
    let json: Value = serde_json::from_str(&run.output).unwrap();
    let leaf = &json["credentials"][0]["value"];
    assert_eq!(leaf["ca"], exported(&server)["/ca"]["certificate"]);
    assert!(leaf.get("ca_name").is_none());
}

#[tokio::test]
async fn the_active_version_is_exported_during_a_rotation() {
    let server = server().await;
    let before = exported(&server);
    let listed = server
        .get("/api/v1/certificates?name=/ca")
        .await
        .expect(200);
    let id = listed.json()["certificates"][0]["id"].clone();
    let regenerate = format!("/api/v1/certificates/{}/regenerate", id.as_str().unwrap());
    server
        .post(&regenerate, json!({"set_as_transitional": true}))
        .await
        .expect(200);
    assert_eq!(exported(&server), before);
}

/// The exported values by name.
fn exported(server: &Server) -> Value {
    let run = Shell::of(server).run(&["export", "--format", "json"]);
    let json: Value = serde_json::from_str(&run.expect(0).output).unwrap();
    let entries = json["credentials"].as_array().unwrap().iter();
    entries
        .map(|entry| {
            (
                entry["name"].as_str().unwrap().to_owned(),
                entry["value"].clone(),
            )
        })
        .collect()
}

async fn server() -> Server {
    let server = Server::start().await;
    for (name, parameters) in [
        ("/ca", json!({"is_ca": true})),
        ("/leaf", json!({"ca": "/ca"})),
    ] {
        crate::given::certificate(&server, name, parameters).await;
    }
    server
}
