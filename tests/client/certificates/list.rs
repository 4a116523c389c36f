//! `keywright certificates list`.

use keywright_harness::{Server, Shell};
use serde_json::Value;

use super::{authority, leaf, regenerate_transitional, summary};
use crate::json_of;

#[tokio::test]
async fn a_pipe_gets_the_certificates_of_the_api() {
    let server = Server::start().await;
    authority(&server, "/root", None).await;
    leaf(&server, "/leaf", "/root").await;
    let all = server.get("/api/v1/certificates").await.expect(200).json();
    let shell = Shell::of(&server);
    let listed = json_of(shell.run(&["certificates", "list"]));
    assert_eq!(listed, all["certificates"]);
    let one = json_of(shell.run(&["certificates", "list", "root"]));
    assert_eq!(one, Value::Array(vec![summary(&server, "/root").await]));
    assert_eq!(one[0]["signs"], serde_json::json!(["/leaf"]));
}

#[tokio::test]
async fn a_terminal_gets_a_row_per_certificate() {
    let server = Server::start().await;
    authority(&server, "/root", None).await;
    leaf(&server, "/leaf", "/root").await;
    regenerate_transitional(&server, "/root").await;
    let shell = Shell::of(&server);
    let (status, screen) = shell.on_terminal(&["certificates", "list"]).end();
    assert_eq!(status, Some(0), "{screen}");
    let words = |name: &str| -> Vec<String> {
        let row = screen.lines().find(|line| line.starts_with(name));
        row.unwrap()
            .split_whitespace()
            .skip(2)
            .map(ToOwned::to_owned)
            .collect()
    };
    assert_eq!(words("/root"), ["2", "yes", "/root", "1"], "{screen}");
    assert_eq!(words("/leaf"), ["1", "/root", "0"], "{screen}");
}

#[tokio::test]
async fn a_missing_certificate_is_not_found() {
    let server = Server::start().await;
    let run = Shell::of(&server).run(&["certificates", "list", "/absent"]);
    assert_eq!(run.expect(4).output, "");
}
