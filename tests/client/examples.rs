//! Each example that the help of a verb shows does what it says.

use keywright_client::commands::{self, Example};
use keywright_harness::{Server, Shell};
use serde_json::json;

#[tokio::test]
async fn every_example_of_every_verb_can_be_typed() {
    let server = Server::start().await;
    for verb in commands::examples() {
        assert!(!verb.examples.is_empty(), "{}", verb.verb);
        for example in verb.examples {
            type_example(&server, example).await;
        }
    }
}

/// Types an example in a fresh folder, on a server on which nothing is stored but a few credentials below `/demo`.
async fn type_example(server: &Server, example: &Example) {
    let found = server.get("/api/v1/data?path=").await.expect(200).json();
    for credential in found["credentials"].as_array().unwrap() {
        let name = credential["name"].as_str().unwrap();
        server
            .delete(&format!("/api/v1/data?name={name}"))
            .await
            .expect(204);
    }
    for (name, credential_type, value) in [
        ("/demo/password", "password", json!("secret")),
        (
            "/demo/user",
            "user",
            json!({"username": "admin", "password": "secret"}),
        ),
        (
            "/demo/database",
            "json",
            json!({"host": "db.example", "port": 5432}),
        ),
    ] {
        server.set(name, credential_type, value).await.expect(200);
    }
    let shell = Shell::of(server);
    for line in example.before.iter().chain([&example.line]) {
        let line = line.replace(SERVER, server.base_url());
        let run = shell.bash(&line);
        assert_eq!(run.status, Some(0), "{line}: {run:#?}");
    }
}

/// The server that examples name.
const SERVER: &str = "https://keywright.example:8844";
