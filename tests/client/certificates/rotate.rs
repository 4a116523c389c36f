//! `keywright certificates rotate`: the whole rotation, left between any two steps and gone on with, while a TLS server
//! presents what the authority signed and clients trust what the verb says.

use std::fs;

use keywright_harness::{Options, Server, Shell, connects};
use serde_json::{Value, json};

use super::{authority, current, leaf};
use crate::json_of;

/// What is in the field at one moment: what a server presents, and what clients trust.
struct Field {
    presented: Value,
    trusted: String,
}

impl Field {
    /// As it is when everybody has what there is: the certificate of `/leaf`, and the bundle of the rotation.
    async fn up_to_date(server: &Server, shell: &Shell) -> Self {
        Self {
            presented: current(server, "/leaf").await[0].clone(),
            trusted: fs::read_to_string(shell.file("trusted.pem")).unwrap(),
        }
    }

    /// Asserts that everybody connects while some have what there is now, and others still what there was before.
    #[track_caller]
    fn connects_with(&self, before: &Self, step: &str) {
        for (presented, server) in [("before", before), ("now", self)] {
            for (trusted, client) in [("before", before), ("now", self)] {
                assert!(
                    connects(&server.presented, &client.trusted),
                    "{step}: a server with what there was {presented}, a client with what there was {trusted}"
                );
            }
        }
    }

    fn trusted_count(&self) -> usize {
        self.trusted.matches("BEGIN CERTIFICATE").count()
    }
}

/// A server with an authority and a certificate that it signed.
async fn server_with_leaf(options: &Options) -> Server {
    let server = Server::start_with(options).await;
    authority(&server, "/root", None).await;
    leaf(&server, "/leaf", "/root").await;
    server
}

/// Where the rotation stands, as the verb tells it.
fn status(shell: &Shell) -> Value {
    json_of(shell.run(&[
        "certificates",
        "rotate",
        "/root",
        "--status",
        "--bundle",
        "trusted.pem",
    ]))
}

#[tokio::test]
async fn step_by_step_from_a_pipe_no_handshake_fails_and_nothing_but_the_server_remembers() {
    let plain = Options::default();
    let concatenated = plain
        .clone()
        .extra("\n[certificates]\nconcatenate_cas = true");
    for options in [plain, concatenated] {
        let server = server_with_leaf(&options).await;
        let shell = Shell::of(&server);
        assert_eq!(status(&shell)["next"], Value::Null);
        let start = Field::up_to_date(&server, &shell).await;
        let mut before = Field::up_to_date(&server, &shell).await;
        for (step, stage, next, trusted_count, by_start) in [
            ("introduce", "introduced", json!("switch"), 2, true),
            ("switch", "switched", json!("renew"), 2, true),
            ("renew", "renewed", json!("retire"), 2, false),
            ("retire", "not_begun", Value::Null, 1, false),
        ] {
            // Each step is taken from another place, which has nothing from the one before.
            let shell = Shell::of(&server);
            let arguments = [
                "certificates",
                "rotate",
                "/root",
                "--next",
                "--bundle",
                "trusted.pem",
            ];
            let told = json_of(shell.run(&arguments));
            assert_eq!(told["steps_taken"], json!([step]));
            assert_eq!(told["stage"], stage, "{told}");
            assert_eq!(told["next"], next, "{told}");
            let now = Field::up_to_date(&server, &shell).await;
            now.connects_with(&before, step);
            assert_eq!(now.trusted_count(), trusted_count, "{step}");
            // Who trusts nothing but the old version is shut out only after what is to be given out in between.
            assert_eq!(connects(&now.presented, &start.trusted), by_start, "{step}");
            let asked_again = status(&shell);
            for member in ["stage", "next", "signing_version", "transitional_version"] {
                assert_eq!(asked_again[member], told[member], "{step}");
            }
            before = now;
        }
    }
}

#[tokio::test]
async fn on_a_terminal_it_can_be_interrupted_before_each_step_and_goes_on_from_there() {
    let server = server_with_leaf(&Options::default()).await;
    let shell = Shell::of(&server);
    let arguments = ["certificates", "rotate", "/root", "--bundle", "trusted.pem"];
    let mut before = {
        status(&shell);
        Field::up_to_date(&server, &shell).await
    };
    for step in 1..=4 {
        let question = format!("Step {step} of 4: ");
        let stood = status(&shell);
        // It is left at the question: nothing is done.
        let mut terminal = shell.on_terminal(&arguments);
        terminal.expect(&question).expect("[y/N]").signal("INT");
        assert_eq!(terminal.end().0, Some(130));
        assert_eq!(status(&shell), stood);
        // It is begun anew, takes the step, and is left at the next question.
        let mut terminal = shell.on_terminal(&arguments);
        terminal.expect(&question).expect("[y/N]").type_line("y");
        if step < 4 {
            terminal.expect(&format!("Step {} of 4: ", step + 1));
            terminal.signal("INT");
            assert_eq!(terminal.end().0, Some(130));
        } else {
            let (status, screen) = terminal.end();
            assert_eq!(status, Some(0), "{screen}");
            assert!(
                screen.contains("The rotation of /root is at its end"),
                "{screen}"
            );
        }
        let now = Field::up_to_date(&server, &shell).await;
        now.connects_with(&before, &question);
        before = now;
    }
    assert_eq!(before.trusted_count(), 1);
    assert_eq!(status(&shell)["stage"], "not_begun");
    assert_eq!(server.versions("/root").await.len(), 2);
    assert_eq!(server.versions("/leaf").await.len(), 2);
}

#[tokio::test]
async fn on_a_terminal_all_steps_are_taken_one_after_the_other_with_what_to_do_in_between() {
    let server = server_with_leaf(&Options::default()).await;
    let shell = Shell::of(&server);
    let mut terminal = shell.on_terminal(&["certificates", "rotate", "root"]);
    for (told, question) in [
        (
            "No rotation of /root is under way.",
            "Step 1 of 4: add a version that is transitional?",
        ),
        (
            "Give the certificates of both versions to everyone",
            "Step 2 of 4: let the new version sign?",
        ),
        (
            "The old one signed 1 certificate",
            "Step 3 of 4: regenerate 1 certificate?",
        ),
        (
            "Give the regenerated ones to everyone",
            "Step 4 of 4: hand out the old version no more?",
        ),
    ] {
        terminal.expect(told).expect(question).type_line("yes");
    }
    let (status, screen) = terminal.end();
    assert_eq!(status, Some(0), "{screen}");
    assert!(screen.contains("regenerated"), "{screen}");
    let [root, leaf] = [
        current(&server, "/root").await,
        current(&server, "/leaf").await,
    ];
    assert_eq!(root.len(), 1);
    assert_eq!(leaf[0]["value"]["ca"], root[0]["value"]["certificate"]);
}

#[tokio::test]
async fn whoever_says_no_leaves_everything_as_it_is() {
    let server = server_with_leaf(&Options::default()).await;
    let shell = Shell::of(&server);
    let before = status(&shell);
    for answer in ["n", "", "perhaps"] {
        let mut terminal = shell.on_terminal(&["certificates", "rotate", "/root"]);
        terminal.expect("[y/N]").type_line(answer);
        let (ended, screen) = terminal.end();
        assert_eq!(ended, Some(3), "{screen}");
        assert!(
            screen.contains("The same command goes on from here."),
            "{screen}"
        );
        assert_eq!(status(&shell), before);
    }
}

#[tokio::test]
async fn a_step_that_someone_else_took_while_a_person_thought_is_not_taken_again() {
    let server = server_with_leaf(&Options::default()).await;
    let shell = Shell::of(&server);
    let mut terminal = shell.on_terminal(&["certificates", "rotate", "/root"]);
    terminal.expect("Step 1 of 4");
    json_of(shell.run(&["certificates", "rotate", "/root", "--next"]));
    terminal.type_line("y");
    terminal
        .expect("gone on meanwhile")
        .expect("Step 2 of 4")
        .type_line("n");
    assert_eq!(terminal.end().0, Some(3));
    assert_eq!(status(&shell)["stage"], "introduced");
    assert_eq!(server.versions("/root").await.len(), 2);
}

#[tokio::test]
async fn it_can_be_interrupted_while_the_server_takes_its_time() {
    let server = server_with_leaf(&Options::default()).await;
    let shell = Shell::of(&server);
    let mut terminal = shell.on_terminal(&["certificates", "rotate", "/root"]);
    terminal.expect("Step 1 of 4").expect("[y/N]");
    signal(&server, "STOP");
    terminal.type_line("y").signal("INT");
    let (ended, _) = terminal.end();
    signal(&server, "CONT");
    assert_eq!(ended, Some(130));
    let told = json_of(shell.run(&["certificates", "rotate", "/root", "--yes"]));
    assert_eq!(told["stage"], "not_begun");
    assert_eq!(server.versions("/root").await.len(), 2);
}

/// Sends a server a signal.
fn signal(server: &Server, name: &str) {
    let id = server.process_id().to_string();
    let status = std::process::Command::new("kill")
        .args(["-s", name, &id])
        .status();
    assert!(status.unwrap().success());
}
