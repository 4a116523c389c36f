//! `keywright certificates rotate`: whole rotations, interrupted between steps, with TLS handshakes between a server with the
//! signed certificate and clients that trust the bundle.

use std::fs;

use keywright_harness::{Commanded, Options, Server, Shell, Text, connects, signal};
use serde_json::{Value, json};

use crate::json_of;

/// The deployed state: the certificate that a server presents, and the bundle that clients trust.
struct Deployment {
    presented: Value,
    trusted: String,
}

impl Deployment {
    /// Returns the state after a complete deployment: the certificate of `/leaf`, and the bundle of the rotation.
    async fn current_state(server: &Server, shell: &Shell) -> Self {
        Self {
            presented: server.current_versions("/leaf").await[0].clone(),
            trusted: fs::read_to_string(shell.file("trusted.pem")).unwrap(),
        }
    }

    /// Asserts that handshakes succeed during the deployment, with any mix of this state and the previous state.
    #[track_caller]
    fn assert_connects_with(&self, before: &Self, step: &str) {
        for (presented, server) in [("before", before), ("now", self)] {
            for (trusted, client) in [("before", before), ("now", self)] {
                assert!(
                    connects(&server.presented, &client.trusted),
                    "{step}: server with the state {presented}, client with the state {trusted}"
                );
            }
        }
    }

    fn trusted_count(&self) -> usize {
        self.trusted.matches("BEGIN CERTIFICATE").count()
    }
}

/// Starts a server with a CA and a certificate that it signed.
pub(super) async fn server_with_leaf(options: &Options) -> Server {
    let server = Server::start_with(options).await;
    server.generate_authority("/root", None).await;
    server.generate_leaf("/leaf", "/root").await;
    server
}

/// Returns the state of the rotation.
fn status(shell: &Shell) -> Value {
    rotate(shell, "/root", &["--status", "--bundle", "trusted.pem"])
}

#[tokio::test]
async fn no_handshake_fails_if_each_step_runs_in_a_new_shell() {
    let plain = Options::default();
    let concatenated = plain
        .clone()
        .extra("\n[certificates]\nconcatenate_cas = true");
    for options in [plain, concatenated] {
        let server = server_with_leaf(&options).await;
        let shell = Shell::of(&server);
        assert_eq!(status(&shell)["next"], Value::Null);
        let start = Deployment::current_state(&server, &shell).await;
        let mut before = Deployment::current_state(&server, &shell).await;
        for (step, stage, next, trusted_count, connects_at_start) in [
            ("introduce", "introduced", json!("switch"), 2, true),
            ("switch", "switched", json!("renew"), 2, true),
            ("renew", "renewed", json!("retire"), 2, false),
            ("retire", "not_begun", Value::Null, 1, false),
        ] {
            // Each step runs in a new shell, without state from the previous step.
            let shell = Shell::of(&server);
            let arguments = ["--next", "--bundle", "trusted.pem"];
            let shown = rotate(&shell, "/root", &arguments);
            assert_eq!(shown["steps_taken"], json!([step]));
            assert_eq!(shown["stage"], stage, "{shown}");
            assert_eq!(shown["next"], next, "{shown}");
            let now = Deployment::current_state(&server, &shell).await;
            now.assert_connects_with(&before, step);
            assert_eq!(now.trusted_count(), trusted_count, "{step}");
            // A client that only trusts the old version fails only after the next deployment.
            let actual = connects(&now.presented, &start.trusted);
            assert_eq!(actual, connects_at_start, "{step}");
            let status = status(&shell);
            for field in ["stage", "next", "signing_version", "transitional_version"] {
                assert_eq!(status[field], shown[field], "{step}");
            }
            before = now;
        }
    }
}

#[tokio::test]
async fn a_rotation_resumes_after_an_interruption_at_any_question() {
    let server = server_with_leaf(&Options::default()).await;
    let shell = Shell::of(&server);
    let arguments = "certificates rotate /root --bundle trusted.pem";
    let mut before = {
        status(&shell);
        Deployment::current_state(&server, &shell).await
    };
    for step in 1..=4 {
        let question = format!("Step {step} of 4: ");
        let unchanged = status(&shell);
        // If the command is interrupted at the question, it changes nothing.
        let mut terminal = shell.on_terminal(arguments);
        terminal.expect(&question).expect("[y/N]").signal("INT");
        assert_eq!(terminal.end().0, Some(130));
        assert_eq!(status(&shell), unchanged);
        // The restarted command takes the step, and is interrupted at the next question.
        let mut terminal = shell.on_terminal(arguments);
        terminal.expect(&question).expect("[y/N]").type_line("y");
        if step < 4 {
            terminal.expect(&format!("Step {} of 4: ", step + 1));
            terminal.signal("INT");
            assert_eq!(terminal.end().0, Some(130));
        } else {
            let (status, screen) = terminal.end();
            assert_eq!(status, Some(0), "{screen}");
            screen.assert_contains("The rotation of /root is complete");
        }
        let now = Deployment::current_state(&server, &shell).await;
        now.assert_connects_with(&before, &question);
        before = now;
    }
    assert_eq!(before.trusted_count(), 1);
    assert_eq!(status(&shell)["stage"], "not_begun");
    assert_eq!(server.versions("/root").await.len(), 2);
    assert_eq!(server.versions("/leaf").await.len(), 2);
}

#[tokio::test]
async fn each_step_is_explained_and_confirmed_on_a_terminal() {
    let server = server_with_leaf(&Options::default()).await;
    let shell = Shell::of(&server);
    let mut terminal = shell.on_terminal("certificates rotate root");
    for (message, question) in [
        (
            "No rotation of /root is in progress.",
            "Step 1 of 4: add a transitional version?",
        ),
        (
            "Distribute the certificates of both versions to all clients",
            "Step 2 of 4: sign with the new version?",
        ),
        (
            "The old version signed 1 certificate",
            "Step 3 of 4: regenerate 1 certificate?",
        ),
        (
            "Deploy the regenerated certificates",
            "Step 4 of 4: stop returning the old version?",
        ),
    ] {
        terminal.expect(message).expect(question).type_line("yes");
    }
    let (status, screen) = terminal.end();
    assert_eq!(status, Some(0), "{screen}");
    screen.assert_contains("regenerated");
    let [root, leaf] = [
        server.current_versions("/root").await,
        server.current_versions("/leaf").await,
    ];
    assert_eq!(root.len(), 1);
    assert_eq!(leaf[0]["value"]["ca"], root[0]["value"]["certificate"]);
}

#[tokio::test]
async fn declining_a_step_changes_nothing() {
    let server = server_with_leaf(&Options::default()).await;
    let shell = Shell::of(&server);
    let before = status(&shell);
    for response in ["n", "", "perhaps"] {
        let mut terminal = shell.on_terminal("certificates rotate /root");
        terminal.expect("[y/N]").type_line(response);
        let (ended, screen) = terminal.end();
        assert_eq!(ended, Some(3), "{screen}");
        screen.assert_contains("Run the same command to continue.");
        assert_eq!(status(&shell), before);
    }
}

#[tokio::test]
async fn a_step_that_another_client_took_meanwhile_is_not_repeated() {
    let server = server_with_leaf(&Options::default()).await;
    let shell = Shell::of(&server);
    let mut terminal = shell.on_terminal("certificates rotate /root");
    terminal.expect("Step 1 of 4");
    rotate(&shell, "/root", &["--next"]);
    terminal.type_line("y");
    terminal
        .expect("continued the rotation")
        .expect("Step 2 of 4")
        .type_line("n");
    assert_eq!(terminal.end().0, Some(3));
    assert_eq!(status(&shell)["stage"], "introduced");
    assert_eq!(server.versions("/root").await.len(), 2);
}

#[tokio::test]
async fn an_interruption_during_a_slow_request_can_be_resumed() {
    let server = server_with_leaf(&Options::default()).await;
    let shell = Shell::of(&server);
    let mut terminal = shell.on_terminal("certificates rotate /root");
    terminal.expect("Step 1 of 4").expect("[y/N]");
    signal(server.process_id(), "STOP");
    terminal.type_line("y").signal("INT");
    let (ended, _) = terminal.end();
    signal(server.process_id(), "CONT");
    assert_eq!(ended, Some(130));
    let output = rotate(&shell, "/root", &["--yes"]);
    assert_eq!(output["stage"], "not_begun");
    assert_eq!(server.versions("/root").await.len(), 2);
}

/// Runs `keywright certificates rotate`.
pub(super) fn run_rotate(shell: &Shell, name: &str, arguments: &[&str]) -> Commanded {
    shell.run(&[&["certificates", "rotate", name], arguments].concat())
}

/// Runs `keywright certificates rotate`, asserts success, and returns the reported state.
pub(super) fn rotate(shell: &Shell, name: &str, arguments: &[&str]) -> Value {
    json_of(run_rotate(shell, name, arguments))
}
