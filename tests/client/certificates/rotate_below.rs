//! Which credentials below a CA `keywright certificates rotate` regenerates.

use keywright_harness::{Server, Shell};
use serde_json::{Value, json};

use super::{authority, current, leaf};
use crate::json_of;

fn rotate(shell: &Shell, name: &str, arguments: &[&str]) -> Value {
    json_of(shell.run(&[&["certificates", "rotate", name] as &[&str], arguments].concat()))
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
    let run = shell.run(&["certificates", "rotate", "/root", "--next"]);
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
