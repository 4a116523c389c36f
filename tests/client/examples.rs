//! The examples in the help of all verbs work.

use keywright_client::commands::{self, Example};
use keywright_harness::{Application, Server, Shell};
use serde_json::json;

#[tokio::test]
async fn every_example_of_every_verb_succeeds() {
    let application = Application::issued();
    let server = Server::start_with(&application.options()).await;
    for verb in commands::examples() {
        for example in verb.examples {
            prepare(&server).await;
            let shell = shell(&server, &application, example);
            let line = line(&server, example.line);
            let run = shell.bash(&line);
            assert_eq!(run.status, Some(0), "{line}: {run:#?}");
        }
    }
}

#[tokio::test]
async fn first_examples_show_no_json_on_a_terminal() {
    let application = Application::issued();
    let server = Server::start_with(&application.options()).await;
    for verb in commands::examples() {
        let example = &verb.examples[0];
        prepare(&server).await;
        let shell = shell(&server, &application, example).variable("NO_COLOR", "1");
        let line = line(&server, example.line);
        let arguments = ["-euo", "pipefail", "-c", &line];
        let (status, screen) = shell.program_on_terminal("bash", &arguments).end();
        assert_eq!(status, Some(0), "{line}: {screen}");
        let is_json = |line: &str| line.starts_with(['{', '[']);
        assert!(!screen.lines().any(is_json), "{line}: {screen}");
    }
}

/// Deletes the credentials of other examples, and stores the credentials below `/demo` that examples require.
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

/// A shell in a new folder with `ca.pem`, `app.pem`, `app-key.pem`, and the requirements of an example.
fn shell(server: &Server, application: &Application, example: &Example) -> Shell {
    let shell = Shell::of(server);
    application.equip(&shell);
    for before in example.before {
        shell.bash(&line(server, before)).expect(0);
    }
    shell
}

/// A line of an example, for this server.
fn line(server: &Server, line: &str) -> String {
    line.replace(SERVER, server.base_url())
}

/// The server in the examples.
const SERVER: &str = "https://keywright.example:8844";
