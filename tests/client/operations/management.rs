//! `keywright management`.

use keywright_harness::{Server, Shell};
use serde_json::json;

use crate::json_of;

#[tokio::test]
async fn read_only_mode_is_shown_and_switched() {
    let server = Server::start().await;
    let shell = Shell::of(&server);
    for (arguments, is_on) in [
        (&["management"] as &[&str], false),
        (&["management", "--read-only", "on"], true),
        (&["management"], true),
        (&["management", "--read-only", "off"], false),
        (&["management"], false),
    ] {
        let mode = json_of(shell.run(arguments));
        assert_eq!(mode, json!({"read_only_mode": is_on}), "{arguments:?}");
        let writes = server.set("/a", "value", json!("x")).await.status;
        assert_eq!(writes, if is_on { 503 } else { 200 }, "{arguments:?}");
    }
    shell.run(&["management", "--read-only", "maybe"]).expect(2);
}

#[tokio::test]
async fn a_terminal_shows_the_mode_as_on_or_off() {
    let server = Server::start().await;
    let shell = Shell::of(&server);
    for mode in ["on", "off"] {
        let (status, screen) = shell
            .on_terminal(&["management", "--read-only", mode])
            .end();
        assert_eq!(status, Some(0), "{screen}");
        assert!(
            screen.trim_end().ends_with(&format!("  {mode}")),
            "{screen}"
        );
    }
}

#[tokio::test]
async fn switching_the_mode_requires_a_login() {
    let server = Server::start().await;
    let run = Shell::at(&server).run(&["management", "--read-only", "on"]);
    assert_eq!(run.expect(5).output, "");
    server.set("/a", "value", json!("x")).await.expect(200);
}
