//! `keywright get`.

use keywright_harness::{Server, Shell};
use serde_json::{Value, json};

#[tokio::test]
async fn in_a_pipe_it_writes_the_version_in_use_as_json_and_nothing_else() {
    let server = Server::start().await;
    server.set("/a", "password", json!("old")).await.expect(200);
    let set = server
        .set("/a", "password", json!("secret"))
        .await
        .expect(200);
    let run = Shell::of(&server).run(&["get", "/a"]).expect(0);
    let shown: Value = serde_json::from_str(&run.output).unwrap();
    assert_eq!(shown, set.json());
    assert_eq!(run.errors, "");
}
