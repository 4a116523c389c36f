//! `keywright certificates rotate`: whole rotations, interrupted between steps, with TLS handshakes between a server with the
//! signed certificate and clients that trust the bundle; which credentials below the CA it regenerates; how many steps it
//! takes, and what it refuses.

use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
};

use keywright_harness::{Commanded, Options, Server, Shell, connects, signal};
use serde_json::{Value, json};

use super::{authority, current, leaf};
use crate::json_of;

/// The deployed state: the certificate that a server presents, and the bundle that clients trust.
struct Deployment {
    presented: Value,
    trusted: String,
}

impl Deployment {
    /// The state after a complete deployment: the certificate of `/leaf`, and the bundle of the rotation.
    async fn current_state(server: &Server, shell: &Shell) -> Self {
        Self {
            presented: current(server, "/leaf").await[0].clone(),
            trusted: fs::read_to_string(shell.file("trusted.pem")).unwrap(),
        }
    }

    /// Asserts that handshakes succeed during the deployment, with any mix of this state and the one before.
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

/// A server with a CA and a certificate that it signed.
async fn server_with_leaf(options: &Options) -> Server {
    let server = Server::start_with(options).await;
    authority(&server, "/root", None).await;
    leaf(&server, "/leaf", "/root").await;
    server
}

/// The state of the rotation.
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
        for (step, stage, next, trusted_count, by_start) in [
            ("introduce", "introduced", json!("switch"), 2, true),
            ("switch", "switched", json!("renew"), 2, true),
            ("renew", "renewed", json!("retire"), 2, false),
            ("retire", "not_begun", Value::Null, 1, false),
        ] {
            // Each step runs in a new shell without state from the one before.
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
            assert_eq!(connects(&now.presented, &start.trusted), by_start, "{step}");
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
    let arguments = ["certificates", "rotate", "/root", "--bundle", "trusted.pem"];
    let mut before = {
        status(&shell);
        Deployment::current_state(&server, &shell).await
    };
    for step in 1..=4 {
        let question = format!("Step {step} of 4: ");
        let unchanged = status(&shell);
        // Interrupted at the question, it changes nothing.
        let mut terminal = shell.on_terminal(&arguments);
        terminal.expect(&question).expect("[y/N]").signal("INT");
        assert_eq!(terminal.end().0, Some(130));
        assert_eq!(status(&shell), unchanged);
        // Restarted, it takes the step and is interrupted at the next question.
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
                screen.contains("The rotation of /root is complete"),
                "{screen}"
            );
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
async fn a_terminal_asks_before_each_step_and_says_what_to_do() {
    let server = server_with_leaf(&Options::default()).await;
    let shell = Shell::of(&server);
    let mut terminal = shell.on_terminal(&["certificates", "rotate", "root"]);
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
    assert!(screen.contains("regenerated"), "{screen}");
    let [root, leaf] = [
        current(&server, "/root").await,
        current(&server, "/leaf").await,
    ];
    assert_eq!(root.len(), 1);
    assert_eq!(leaf[0]["value"]["ca"], root[0]["value"]["certificate"]);
}

#[tokio::test]
async fn declining_a_step_changes_nothing() {
    let server = server_with_leaf(&Options::default()).await;
    let shell = Shell::of(&server);
    let before = status(&shell);
    for answer in ["n", "", "perhaps"] {
        let mut terminal = shell.on_terminal(&["certificates", "rotate", "/root"]);
        terminal.expect("[y/N]").type_line(answer);
        let (ended, screen) = terminal.end();
        assert_eq!(ended, Some(3), "{screen}");
        assert!(
            screen.contains("Run the same command to continue."),
            "{screen}"
        );
        assert_eq!(status(&shell), before);
    }
}

#[tokio::test]
async fn a_step_taken_by_someone_else_at_the_prompt_is_not_repeated() {
    let server = server_with_leaf(&Options::default()).await;
    let shell = Shell::of(&server);
    let mut terminal = shell.on_terminal(&["certificates", "rotate", "/root"]);
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
    let mut terminal = shell.on_terminal(&["certificates", "rotate", "/root"]);
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
fn run_rotate(shell: &Shell, name: &str, arguments: &[&str]) -> Commanded {
    shell.run(&[&["certificates", "rotate", name], arguments].concat())
}

/// Runs `keywright certificates rotate`, asserts success, and returns the reported state.
fn rotate(shell: &Shell, name: &str, arguments: &[&str]) -> Value {
    json_of(run_rotate(shell, name, arguments))
}

/// A server with `/root`, `/inner` that it signed, `/leaf` that `/inner` signed, and `/other` that `/root` signed.
async fn server_with_tree() -> Server {
    let server = Server::start().await;
    authority(&server, "/root", None).await;
    authority(&server, "/inner", Some("/root")).await;
    leaf(&server, "/leaf", "/inner").await;
    leaf(&server, "/other", "/root").await;
    server
}

/// Regenerates a certificate without the ones that it signed.
async fn regenerate(server: &Server, name: &str) {
    server.regenerate(name).await.expect(200);
}

#[tokio::test]
async fn certificates_below_a_regenerated_one_stay_outstanding() {
    let server = server_with_tree().await;
    let shell = Shell::of(&server);
    rotate(&shell, "/root", &["--next"]);
    rotate(&shell, "/root", &["--next"]);
    let outstanding = || rotate(&shell, "/root", &["--status"])["outstanding"].clone();
    // Certificates below an outstanding one are regenerated with it and not listed.
    assert_eq!(outstanding(), json!(["/inner", "/other"]));
    regenerate(&server, "/other").await;
    assert_eq!(outstanding(), json!(["/inner"]));
    regenerate(&server, "/inner").await;
    assert_eq!(outstanding(), json!(["/leaf"]));
    assert_eq!(rotate(&shell, "/root", &["--status"])["stage"], "switched");
    regenerate(&server, "/leaf").await;
    assert_eq!(outstanding(), json!([]));
    assert_eq!(rotate(&shell, "/root", &["--status"])["stage"], "renewed");
}

#[tokio::test]
async fn a_chain_of_three_is_regenerated_up_to_the_new_version() {
    let server = server_with_tree().await;
    let output = rotate(&Shell::of(&server), "/root", &["--yes"]);
    let names = json!(["/inner", "/leaf", "/other"]);
    assert_eq!(output["regenerated_credentials"], names);
    let mut above = current(&server, "/root").await[0].clone();
    for name in ["/inner", "/leaf"] {
        let signed = current(&server, name).await[0].clone();
        assert_eq!(
            signed["value"]["ca"], above["value"]["certificate"],
            "{name}"
        );
        above = signed;
    }
}

#[tokio::test]
async fn an_intermediate_ca_is_rotated_like_a_root_ca() {
    let server = server_with_tree().await;
    let root = current(&server, "/root").await;
    let shell = Shell::of(&server);
    let output = rotate(&shell, "/inner", &["--yes"]);
    assert_eq!(output["regenerated_credentials"], json!(["/leaf"]));
    let inner = current(&server, "/inner").await;
    assert_eq!(inner[0]["value"]["ca"], root[0]["value"]["certificate"]);
    assert_eq!(current(&server, "/root").await, root);
    assert_eq!(server.versions("/other").await.len(), 1);
}

#[tokio::test]
async fn a_certificate_moved_to_another_ca_is_not_outstanding() {
    let server = server_with_tree().await;
    authority(&server, "/elsewhere", None).await;
    leaf(&server, "/other", "/elsewhere").await;
    let shell = Shell::of(&server);
    rotate(&shell, "/root", &["--next"]);
    let output = rotate(&shell, "/root", &["--next"]);
    assert_eq!(output["outstanding"], json!(["/inner"]));
    let output = rotate(&shell, "/root", &["--next"]);
    assert_eq!(output["stage"], "renewed");
}

#[tokio::test]
async fn an_unreadable_certificate_below_the_ca_is_named() {
    let server = server_with_tree().await;
    let operations = ["read", "write"];
    for path in ["/root", "/inner", "/leaf"] {
        server.grant(path, "uaa-client:app", &operations).await;
    }
    let caller = server.as_client("app").await;
    let shell = Shell::at(&server).variable("KEYWRIGHT_CLIENT_TOKEN", caller.token());
    for _ in 0..2 {
        rotate(&Shell::of(&server), "/root", &["--next"]);
    }
    let run = run_rotate(&shell, "/root", &["--next"]);
    let run = run.expect(4);
    assert!(
        run.errors.contains("can't read /other, which /root signed"),
        "{}",
        run.errors
    );
    server.grant("/other", "uaa-client:app", &operations).await;
    let output = rotate(&shell, "/root", &["--next"]);
    assert_eq!(output["stage"], "renewed");
}

#[tokio::test]
async fn yes_takes_all_remaining_steps_from_any_stage() {
    let server = server_with_leaf(&Options::default()).await;
    let shell = Shell::of(&server);
    let steps = ["introduce", "switch", "renew", "retire"];
    for taken_before in 0..4 {
        for _ in 0..taken_before {
            rotate(&shell, "/root", &["--next"]);
        }
        let reported = rotate(&shell, "/root", &["--yes"]);
        assert_eq!(reported["steps_taken"], json!(steps[taken_before..]));
        assert_eq!(reported["stage"], "not_begun");
        let renewed = taken_before < 3;
        let regenerated = reported["regenerated_credentials"].as_array().unwrap();
        assert_eq!(!regenerated.is_empty(), renewed, "{reported}");
    }
    // Each rotation adds one version of the CA and one of the leaf.
    for name in ["/root", "/leaf"] {
        assert_eq!(server.versions(name).await.len(), 5);
    }
}

#[tokio::test]
async fn resume_continues_a_rotation_but_starts_none() {
    let server = server_with_leaf(&Options::default()).await;
    let shell = Shell::of(&server);
    for arguments in [&["--resume", "--yes"], &["--resume", "--next"]] {
        let reported = rotate(&shell, "/root", arguments);
        assert_eq!(reported["steps_taken"], json!([]));
    }
    let run = run_rotate(&shell, "/root", &["--resume"]);
    assert!(run.expect(0).errors.contains("nothing to resume"));
    assert_eq!(server.versions("/root").await.len(), 1);
    rotate(&shell, "/root", &["--next"]);
    let reported = rotate(&shell, "/root", &["--resume", "--yes"]);
    assert_eq!(
        reported["steps_taken"],
        json!(["switch", "renew", "retire"])
    );
}

#[tokio::test]
async fn without_a_terminal_next_or_yes_is_required() {
    let server = server_with_leaf(&Options::default()).await;
    let shell = Shell::of(&server);
    let run = run_rotate(&shell, "/root", &[]).expect(2);
    assert!(
        run.errors.contains("--next") && run.errors.contains("--yes"),
        "{}",
        run.errors
    );
    for arguments in [
        ["--next", "--yes"],
        ["--status", "--next"],
        ["--status", "--yes"],
    ] {
        run_rotate(&shell, "/root", &arguments).expect(2);
    }
    assert_eq!(server.versions("/root").await.len(), 1);
}

#[tokio::test]
async fn leaf_certificates_and_missing_names_are_refused() {
    let server = server_with_leaf(&Options::default()).await;
    let shell = Shell::of(&server);
    for (name, status, message) in [("/leaf", 1, "/leaf is not a CA"), ("/absent", 4, "")] {
        let run = run_rotate(&shell, name, &["--next"]);
        let run = run.expect(status);
        assert!(run.errors.contains(message), "{}", run.errors);
        assert_eq!(run.output, "");
    }
    assert_eq!(server.versions("/leaf").await.len(), 1);
}

#[tokio::test]
async fn a_ca_without_a_signing_version_is_refused_with_a_remedy() {
    let server = Server::start().await;
    authority(&server, "/root", None).await;
    let shell = Shell::of(&server);
    shell
        .run(&["certificates", "transitional", "/root", "--latest"])
        .expect(0);
    let run = run_rotate(&shell, "/root", &["--next"]).expect(1);
    let remedy = "certificates transitional /root --clear";
    assert!(run.errors.contains(remedy), "{}", run.errors);
    shell.bash(&format!("keywright {remedy}")).expect(0);
    rotate(&shell, "/root", &["--next"]);
}

#[tokio::test]
async fn a_ca_that_signed_nothing_skips_the_regeneration() {
    let server = Server::start().await;
    authority(&server, "/root", None).await;
    let reported = rotate(&Shell::of(&server), "/root", &["--yes"]);
    assert_eq!(
        reported["steps_taken"],
        json!(["introduce", "switch", "retire"])
    );
    assert_eq!(reported["regenerated_credentials"], json!([]));
}

#[tokio::test]
async fn an_unwritable_bundle_stops_the_run_before_a_step() {
    let server = server_with_leaf(&Options::default()).await;
    server.regenerate_as_transitional("/root").await.expect(200);
    let shell = Shell::of(&server);
    rotate(&shell, "/root", &["--status", "--bundle", "trusted.pem"]);
    let bundle = shell.file("trusted.pem");
    let mode = fs::metadata(&bundle).unwrap().permissions().mode();
    assert_eq!(mode & 0o700, 0o600);
    assert_eq!(mode & 0o133, 0);
    assert!(!fs::read_to_string(&bundle).unwrap().contains("PRIVATE KEY"));
    let arguments = ["--next", "--bundle", "absent/trusted.pem"];
    let run = run_rotate(&shell, "/root", &arguments);
    assert!(run.expect(1).errors.contains("absent/trusted.pem"));
    let reported = rotate(&shell, "/root", &["--status"]);
    assert_eq!(reported["stage"], "introduced");
}

#[tokio::test]
async fn a_bundle_behind_a_link_is_replaced_and_the_link_stays() {
    let server = server_with_leaf(&Options::default()).await;
    let shell = Shell::of(&server);
    fs::create_dir(shell.file("far")).unwrap();
    symlink("far/bundle", shell.file("trusted.pem")).unwrap();
    for (arguments, count) in [(["--status", "--bundle"], 1), (["--next", "--bundle"], 2)] {
        rotate(
            &shell,
            "/root",
            &[&arguments[..], &["trusted.pem"]].concat(),
        );
        let link = fs::symlink_metadata(shell.file("trusted.pem")).unwrap();
        assert!(link.is_symlink());
        let bundle = fs::read_to_string(shell.file("far/bundle")).unwrap();
        assert_eq!(bundle.matches("BEGIN CERTIFICATE").count(), count);
    }
}
