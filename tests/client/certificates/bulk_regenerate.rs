//! `keywright bulk-regenerate`.

use keywright_harness::{Server, Shell};
use serde_json::json;

use super::{authority, current, leaf};
use crate::json_of;

#[tokio::test]
async fn everything_below_an_authority_is_regenerated_and_named() {
    let server = Server::start().await;
    authority(&server, "/root", None).await;
    authority(&server, "/inner", Some("/root")).await;
    leaf(&server, "/leaf", "/inner").await;
    let before = current(&server, "/leaf").await;
    let shell = Shell::of(&server);
    let expected = json!({"regenerated_credentials": ["/inner", "/leaf"]});
    assert_eq!(json_of(shell.run(&["bulk-regenerate", "/root"])), expected);
    assert_ne!(current(&server, "/leaf").await, before);
    let (status, screen) = shell.on_terminal(&["bulk-regenerate", "inner"]).end();
    assert_eq!(status, Some(0), "{screen}");
    assert!(
        screen.ends_with("/leaf\n") && !screen.contains("/inner"),
        "{screen}"
    );
}

#[tokio::test]
async fn what_signed_nothing_is_told_and_is_no_failure() {
    let server = Server::start().await;
    authority(&server, "/root", None).await;
    let run = Shell::of(&server)
        .run(&["bulk-regenerate", "/root"])
        .expect(0);
    assert!(
        run.errors.contains("/root signed nothing"),
        "{}",
        run.errors
    );
    assert_eq!(json_of(run), json!({"regenerated_credentials": []}));
}

#[tokio::test]
async fn who_may_not_write_all_of_it_changes_nothing() {
    let server = Server::start().await;
    authority(&server, "/root", None).await;
    leaf(&server, "/leaf", "/root").await;
    server
        .grant("/root", "uaa-client:app", &["read", "write"])
        .await;
    let caller = server.as_client("app").await;
    let shell = Shell::at(&server).variable("KEYWRIGHT_CLIENT_TOKEN", caller.token());
    shell.run(&["bulk-regenerate", "/root"]).expect(5);
    assert_eq!(server.versions("/leaf").await.len(), 1);
}
