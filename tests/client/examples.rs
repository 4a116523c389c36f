//! Each example that the help of a verb shows does what it says.

use keywright_client::commands::{self, Example};
use keywright_harness::{Server, Shell};
use serde_json::json;

use crate::application::Application;

#[tokio::test]
async fn every_example_of_every_verb_can_be_typed() {
    let application = Application::new();
    let server = Server::start_with(&application.options()).await;
    for verb in commands::examples() {
        for example in verb.examples {
            prepare(&server).await;
            type_example(&server, &application, example);
        }
    }
}

/// Deletes what other examples have stored, and stores a few credentials below `/demo`, which examples take for granted.
async fn prepare(server: &Server) {
    let found = server.get("/api/v1/data?path=").await.expect(200).json();
    for credential in found["credentials"].as_array().unwrap() {
        let name = credential["name"].as_str().unwrap();
        let deleted = server.delete(&format!("/api/v1/data?name={name}")).await;
        deleted.expect(204);
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
}

/// Types an example in a fresh folder, in which there are `ca.pem`, `app.pem` and `app-key.pem`.
fn type_example(server: &Server, application: &Application, example: &Example) {
    let shell = Shell::of(server);
    application.equip(&shell);
    for line in example.before.iter().chain([&example.line]) {
        let line = line.replace(SERVER, server.base_url());
        let run = shell.bash(&line);
        assert_eq!(run.status, Some(0), "{line}: {run:#?}");
    }
}

/// The server that examples name.
const SERVER: &str = "https://keywright.example:8844";
