//! `keywright bulk-regenerate`.

use keywright_harness::{Server, Shell};
use serde_json::json;

use super::{authority, current, leaf};
use crate::json_of;

#[tokio::test]
async fn everything_below_a_ca_is_regenerated_and_listed() {
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
async fn a_ca_that_signed_nothing_is_reported_with_success() {
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
async fn missing_write_permission_on_one_changes_nothing() {
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

#[tokio::test]
async fn values_of_a_plugin_are_found_but_need_another_plugin() {
    let server = Server::start().await;
    for name in ["/a/one", "/a/two", "/b"] {
        server
            .generate(name, "password", json!({}))
            .await
            .expect(200);
    }
    let shell = Shell::of(&server);
    let known = json_of(shell.run(&["types", "password"]));
    let digest = known["plugin"]["digest"].as_str().unwrap();
    let digest = format!("sha256:{digest}");
    let found = ["find", "--names", "--generated-by", &digest];
    let run = shell.run(&found).expect(0);
    assert_eq!(run.output, "/b\n/a/two\n/a/one\n");
    let run = shell.run(&[&found[..], &["--name-like", "o"]].concat());
    assert_eq!(run.expect(0).output, "/a/two\n/a/one\n");

    let bulk = ["bulk-regenerate", "--generated-by", &digest];
    let dry_run = [&bulk[..], &["--dry-run", "--path", "/a"]].concat();
    let expected = json!({"regenerated_credentials": ["/a/one", "/a/two"], "dry_run": true});
    assert_eq!(json_of(shell.run(&dry_run)), expected);
    let table = shell.run(&[&dry_run[..], &["-o", "table"]].concat());
    assert!(table.expect(0).output.starts_with("TO BE REGENERATED\n"));
    let run = shell.run(&bulk).expect(1);
    assert!(
        run.errors.contains("configure another plugin first"),
        "{}",
        run.errors
    );
    assert_eq!(server.versions("/b").await.len(), 1);
}

#[test]
fn either_a_ca_or_a_plugin_is_required() {
    let shell = Shell::new();
    for wrong in [
        &["bulk-regenerate"][..],
        &["bulk-regenerate", "--dry-run"],
        &["bulk-regenerate", "/root", "--generated-by", "sha256:0"],
        &["bulk-regenerate", "/root", "--path", "/a"],
        &["find", "--generated-by", "0", "--expires-within-days", "3"],
    ] {
        shell.run(wrong).expect(2);
    }
}
