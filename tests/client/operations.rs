//! The commands for operators: `management` and `key-usage`.

use keywright_harness::{Server, Shell};
use serde_json::json;

use crate::json_of;

#[tokio::test]
async fn read_only_mode_is_shown_and_switched() {
    let server = Server::reused().await;
    let shell = Shell::of(&server);
    for (arguments, is_on) in [
        ("management", false),
        ("management --read-only on", true),
        ("management", true),
        ("management --read-only off", false),
        ("management", false),
    ] {
        let mode = json_of(shell.run(arguments));
        assert_eq!(mode, json!({"read_only_mode": is_on}), "{arguments:?}");
        let writes = server.set("/a", "value", json!("x")).await.status;
        assert_eq!(writes, if is_on { 503 } else { 200 }, "{arguments:?}");
    }
    shell.run("management --read-only maybe").expect(2);
    // Switching requires a login.
    let run = Shell::at(&server).run("management --read-only on");
    assert_eq!(run.expect(5).output, "");
    server.stored("/a", "value", json!("x")).await;
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
async fn key_usage_counts_versions_by_kind_of_key() {
    let server = Server::reused().await;
    for _ in 0..3 {
        server.stored("/a", "value", json!("x")).await;
    }
    let shell = Shell::of(&server);
    let usage = json!({"active_key": 3, "inactive_keys": 0, "unknown_keys": 0});
    assert_eq!(json_of(shell.run("key-usage")), usage);
    let (status, screen) = shell.on_terminal("key-usage").end();
    assert_eq!(status, Some(0));
    let screen = screen.replace("\u{1b}[1m", "").replace("\u{1b}[0m", "");
    assert_eq!(
        screen,
        "active key     3\ninactive keys  0\nunknown keys   0\n"
    );
}
