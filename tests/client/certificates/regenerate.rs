//! `keywright certificates regenerate`.

use keywright_harness::{Server, Shell};
use serde_json::json;

use super::{authority, current, leaf, regenerate_transitional};
use crate::json_of;

#[tokio::test]
async fn a_new_version_is_generated_and_shown() {
    let server = Server::start().await;
    let root = authority(&server, "/root", None).await;
    let shell = Shell::of(&server);
    let made = json_of(shell.run(&["certificates", "regenerate", "root"]));
    assert_ne!(made["id"], root["id"]);
    assert_eq!(made["transitional"], false);
    assert_eq!(made["value"], current(&server, "/root").await[0]["value"]);
    let arguments = ["certificates", "regenerate", "/root", "--transitional"];
    let (status, screen) = shell.on_terminal(&arguments).end();
    assert_eq!(status, Some(0), "{screen}");
    let id = current(&server, "/root").await[1]["id"].clone();
    assert!(screen.contains(id.as_str().unwrap()), "{screen}");
    // A transitional version already exists.
    shell.run(&arguments).expect(1);
}

#[tokio::test]
async fn options_change_key_length_and_duration() {
    let server = Server::start().await;
    let parameters = json!({"common_name": "root", "is_ca": true});
    server
        .generate("/root", "certificate", parameters)
        .await
        .expect(200);
    let shell = Shell::of(&server);
    let certificate = ["certificates", "regenerate", "/root"];
    let longer = ["--key-length", "3072", "--duration", "7"];
    let made = json_of(shell.run(&[&certificate as &[&str], &longer].concat()));
    assert_eq!(made["key_length"], 3072);
    assert_eq!(made["duration_used"], 7);
    let stored = current(&server, "/root").await;
    assert_eq!(made["value"], stored[0]["value"]);
    for refused in [["--key-length", "1024"], ["--duration", "0"]] {
        let run = shell.run(&[&certificate as &[&str], &refused].concat());
        run.expect(1);
    }
}

#[tokio::test]
async fn a_transitional_ca_version_signs_only_if_allowed() {
    let server = Server::start().await;
    authority(&server, "/root", None).await;
    leaf(&server, "/leaf", "/root").await;
    regenerate_transitional(&server, "/root").await;
    let authorities = current(&server, "/root").await;
    let shell = Shell::of(&server);
    for (arguments, signer) in [
        (&[] as &[&str], &authorities[0]),
        (&["--allow-transitional-parent-to-sign"], &authorities[1]),
    ] {
        let arguments = [
            &["certificates", "regenerate", "/leaf"] as &[&str],
            arguments,
        ]
        .concat();
        let made = json_of(shell.run(&arguments));
        assert_eq!(
            made["value"]["ca"], signer["value"]["certificate"],
            "{arguments:?}"
        );
    }
}
