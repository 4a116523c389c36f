//! `keywright regenerate`.

use keywright_harness::{Server, Shell};
use serde_json::json;

use super::shown;

#[tokio::test]
async fn a_version_with_the_same_parameters_and_metadata_is_added() {
    let server = Server::start().await;
    let parameters = json!({"length": 12});
    server
        .generate("/a", "password", parameters)
        .await
        .expect(200);
    let shell = Shell::of(&server);
    let metadata = r#"{"owner":"ops"}"#;
    let made = shown(shell.run(&["regenerate", "/a", "--metadata", metadata]));
    assert_eq!(made["metadata"]["owner"], "ops");
    assert_eq!(made["value"].as_str().unwrap().len(), 12);
    assert_eq!(server.versions("/a").await.len(), 2);
    let (status, screen) = shell.on_terminal(&["regenerate", "/a"]).end();
    assert_eq!(status, Some(0), "{screen}");
    assert_eq!(server.versions("/a").await.len(), 3);
}

#[tokio::test]
async fn a_credential_that_was_set_is_not_regenerated() {
    let server = Server::start().await;
    server.set("/a", "password", json!("x")).await.expect(200);
    Shell::of(&server).run(&["regenerate", "/a"]).expect(1);
    assert_eq!(server.versions("/a").await.len(), 1);
}
