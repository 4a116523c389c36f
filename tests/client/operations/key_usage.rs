//! `keywright key-usage`.

use keywright_harness::{Server, Shell};
use serde_json::json;

use crate::json_of;

#[tokio::test]
async fn versions_are_counted_by_kind_of_key() {
    let server = Server::start().await;
    for _ in 0..3 {
        server.set("/a", "value", json!("x")).await.expect(200);
    }
    let shell = Shell::of(&server);
    let usage = json!({"active_key": 3, "inactive_keys": 0, "unknown_keys": 0});
    assert_eq!(json_of(shell.run(&["key-usage"])), usage);
    let (status, screen) = shell.on_terminal(&["key-usage"]).end();
    assert_eq!(status, Some(0));
    let screen = screen.replace("\u{1b}[1m", "").replace("\u{1b}[0m", "");
    assert_eq!(
        screen,
        "active key     3\ninactive keys  0\nunknown keys   0\n"
    );
}
