//! How far `keywright certificates rotate` goes, and what it refuses.

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
async fn all_steps_that_are_left_are_taken_from_wherever_it_stands() {
    let server = server_with_leaf().await;
    let shell = Shell::of(&server);
    let steps = ["introduce", "switch", "renew", "retire"];
    for taken_before in 0..4 {
        for _ in 0..taken_before {
            rotate(&shell, &["--next"]);
        }
        let told = rotate(&shell, &["--yes"]);
        assert_eq!(told["steps_taken"], json!(steps[taken_before..]));
        assert_eq!(told["stage"], "not_begun");
        let renewed = taken_before < 3;
        let regenerated = told["regenerated_credentials"].as_array().unwrap();
        assert_eq!(!regenerated.is_empty(), renewed, "{told}");
    }
    // A version of the authority and one of the leaf for each rotation, besides those that were there.
    for name in ["/root", "/leaf"] {
        assert_eq!(server.versions(name).await.len(), 5);
    }
}

#[tokio::test]
async fn resuming_goes_on_and_begins_nothing() {
    let server = server_with_leaf().await;
    let shell = Shell::of(&server);
    for arguments in [&["--resume", "--yes"], &["--resume", "--next"]] {
        let told = rotate(&shell, arguments);
        assert_eq!(told["steps_taken"], json!([]));
    }
    let run = shell.run(&["certificates", "rotate", "/root", "--resume"]);
    assert!(run.expect(0).errors.contains("none to go on with"));
    assert_eq!(server.versions("/root").await.len(), 1);
    rotate(&shell, &["--next"]);
    let told = rotate(&shell, &["--resume", "--yes"]);
    assert_eq!(told["steps_taken"], json!(["switch", "renew", "retire"]));
}

#[tokio::test]
async fn where_nobody_can_be_asked_nothing_is_done_until_it_is_said_how_far_to_go() {
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
async fn what_is_no_authority_and_what_is_not_there_is_refused() {
    let server = server_with_leaf().await;
    let shell = Shell::of(&server);
    for (name, status, told) in [
        ("/leaf", 1, "/leaf is no certificate authority"),
        ("/absent", 4, ""),
    ] {
        let run = shell.run(&["certificates", "rotate", name, "--next"]);
        let run = run.expect(status);
        assert!(run.errors.contains(told), "{}", run.errors);
        assert_eq!(run.output, "");
    }
    assert_eq!(server.versions("/leaf").await.len(), 1);
}

#[tokio::test]
async fn an_authority_none_of_whose_versions_signs_is_refused_with_the_way_out() {
    let server = Server::start().await;
    authority(&server, "/root", None).await;
    let shell = Shell::of(&server);
    shell
        .run(&["certificates", "transitional", "/root", "--latest"])
        .expect(0);
    let run = shell
        .run(&["certificates", "rotate", "/root", "--next"])
        .expect(1);
    let way_out = "certificates transitional /root --clear";
    assert!(run.errors.contains(way_out), "{}", run.errors);
    shell.bash(&format!("keywright {way_out}")).expect(0);
    rotate(&shell, &["--next"]);
}

#[tokio::test]
async fn an_authority_that_signed_nothing_needs_no_regeneration() {
    let server = Server::start().await;
    authority(&server, "/root", None).await;
    let told = rotate(&Shell::of(&server), &["--yes"]);
    assert_eq!(
        told["steps_taken"],
        json!(["introduce", "switch", "retire"])
    );
    assert_eq!(told["regenerated_credentials"], json!([]));
}

#[tokio::test]
async fn the_bundle_can_be_read_by_all_and_one_that_can_t_be_written_ends_it_before_a_step() {
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
    let told = rotate(&shell, &["--status"]);
    assert_eq!(told["stage"], "introduced");
}

#[tokio::test]
async fn a_bundle_that_a_link_leads_to_is_replaced_and_the_link_stays() {
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
