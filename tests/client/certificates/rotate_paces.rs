//! How many steps `keywright certificates rotate` takes, and what it refuses.

use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
};

use keywright_harness::{Server, Shell};
use serde_json::{Value, json};

use super::{authority, leaf, regenerate_transitional};
use crate::json_of;

async fn server_with_leaf() -> Server {
    let server = Server::start().await;
    authority(&server, "/root", None).await;
    leaf(&server, "/leaf", "/root").await;
    server
}

fn rotate(shell: &Shell, arguments: &[&str]) -> Value {
    json_of(shell.run(&[&["certificates", "rotate", "/root"] as &[&str], arguments].concat()))
}

#[tokio::test]
async fn yes_takes_all_remaining_steps_from_any_stage() {
    let server = server_with_leaf().await;
    let shell = Shell::of(&server);
    let steps = ["introduce", "switch", "renew", "retire"];
    for taken_before in 0..4 {
        for _ in 0..taken_before {
            rotate(&shell, &["--next"]);
        }
        let reported = rotate(&shell, &["--yes"]);
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
    let server = server_with_leaf().await;
    let shell = Shell::of(&server);
    for arguments in [&["--resume", "--yes"], &["--resume", "--next"]] {
        let reported = rotate(&shell, arguments);
        assert_eq!(reported["steps_taken"], json!([]));
    }
    let run = shell.run(&["certificates", "rotate", "/root", "--resume"]);
    assert!(run.expect(0).errors.contains("nothing to resume"));
    assert_eq!(server.versions("/root").await.len(), 1);
    rotate(&shell, &["--next"]);
    let reported = rotate(&shell, &["--resume", "--yes"]);
    assert_eq!(
        reported["steps_taken"],
        json!(["switch", "renew", "retire"])
    );
}

#[tokio::test]
async fn without_a_terminal_next_or_yes_is_required() {
    let server = server_with_leaf().await;
    let shell = Shell::of(&server);
    let run = shell.run(&["certificates", "rotate", "/root"]).expect(2);
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
        shell
            .run(
                &[
                    &["certificates", "rotate", "/root"] as &[&str],
                    &arguments[..],
                ]
                .concat(),
            )
            .expect(2);
    }
    assert_eq!(server.versions("/root").await.len(), 1);
}

#[tokio::test]
async fn leaf_certificates_and_missing_names_are_refused() {
    let server = server_with_leaf().await;
    let shell = Shell::of(&server);
    for (name, status, message) in [("/leaf", 1, "/leaf is not a CA"), ("/absent", 4, "")] {
        let run = shell.run(&["certificates", "rotate", name, "--next"]);
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
    let run = shell
        .run(&["certificates", "rotate", "/root", "--next"])
        .expect(1);
    let remedy = "certificates transitional /root --clear";
    assert!(run.errors.contains(remedy), "{}", run.errors);
    shell.bash(&format!("keywright {remedy}")).expect(0);
    rotate(&shell, &["--next"]);
}

#[tokio::test]
async fn a_ca_that_signed_nothing_skips_the_regeneration() {
    let server = Server::start().await;
    authority(&server, "/root", None).await;
    let reported = rotate(&Shell::of(&server), &["--yes"]);
    assert_eq!(
        reported["steps_taken"],
        json!(["introduce", "switch", "retire"])
    );
    assert_eq!(reported["regenerated_credentials"], json!([]));
}

#[tokio::test]
async fn an_unwritable_bundle_stops_the_run_before_a_step() {
    let server = server_with_leaf().await;
    regenerate_transitional(&server, "/root").await;
    let shell = Shell::of(&server);
    rotate(&shell, &["--status", "--bundle", "trusted.pem"]);
    let bundle = shell.file("trusted.pem");
    let mode = fs::metadata(&bundle).unwrap().permissions().mode();
    assert_eq!(mode & 0o700, 0o600);
    assert_eq!(mode & 0o133, 0);
    assert!(!fs::read_to_string(&bundle).unwrap().contains("PRIVATE KEY"));
    let arguments = ["--next", "--bundle", "absent/trusted.pem"];
    let run = shell.run(
        &[
            &["certificates", "rotate", "/root"] as &[&str],
            &arguments[..],
        ]
        .concat(),
    );
    assert!(run.expect(1).errors.contains("absent/trusted.pem"));
    let reported = rotate(&shell, &["--status"]);
    assert_eq!(reported["stage"], "introduced");
}

#[tokio::test]
async fn a_bundle_behind_a_link_is_replaced_and_the_link_stays() {
    let server = server_with_leaf().await;
    let shell = Shell::of(&server);
    fs::create_dir(shell.file("far")).unwrap();
    symlink("far/bundle", shell.file("trusted.pem")).unwrap();
    for (arguments, count) in [(["--status", "--bundle"], 1), (["--next", "--bundle"], 2)] {
        rotate(&shell, &[&arguments[..], &["trusted.pem"]].concat());
        let link = fs::symlink_metadata(shell.file("trusted.pem")).unwrap();
        assert!(link.is_symlink());
        let bundle = fs::read_to_string(shell.file("far/bundle")).unwrap();
        assert_eq!(bundle.matches("BEGIN CERTIFICATE").count(), count);
    }
}
