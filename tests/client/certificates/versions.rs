//! `keywright certificates versions`.

use keywright_harness::{Server, Shell, member};
use serde_json::Value;

use super::{authority, current, regenerate_transitional};
use crate::json_of;

fn ids(versions: &[Value]) -> Vec<&str> {
    versions
        .iter()
        .map(|one| one["id"].as_str().unwrap())
        .collect()
}

#[tokio::test]
async fn all_or_only_current_versions_are_listed_in_order() {
    let server = Server::start().await;
    authority(&server, "/root", None).await;
    server.regenerate("/root").await.expect(200);
    regenerate_transitional(&server, "/root").await;
    let all = server.versions("/root").await;
    let shell = Shell::of(&server);
    let listed = json_of(shell.run(&["certificates", "versions", "/root"]));
    let listed = listed.as_array().unwrap();
    assert_eq!(ids(listed), ids(&all));
    let in_use = json_of(shell.run(&["certificates", "versions", "/root", "--current"]));
    let in_use = in_use.as_array().unwrap();
    assert_eq!(ids(in_use), ids(&current(&server, "/root").await));
    assert_eq!(in_use[0]["transitional"], false);
    assert_eq!(in_use[1]["transitional"], true);
}

#[tokio::test]
async fn certificates_are_shown_without_private_keys() {
    let server = Server::start().await;
    let root = authority(&server, "/root", None).await;
    let shell = Shell::of(&server);
    for form in ["json", "yaml", "table"] {
        let run = shell.run(&["certificates", "versions", "/root", "--output", form]);
        let output = run.expect(0).output;
        assert!(output.contains(root["id"].as_str().unwrap()), "{form}");
        assert!(!output.contains("PRIVATE KEY"), "{form}");
    }
    let listed = json_of(shell.run(&["certificates", "versions", "/root"]));
    assert_eq!(
        member(&listed[0], "certificate"),
        member(&root, "certificate")
    );
    for fact in [
        "expiry_date",
        "generated",
        "certificate_authority",
        "self_signed",
    ] {
        assert_eq!(listed[0][fact], root[fact], "{fact}");
    }
}

#[tokio::test]
async fn a_terminal_gets_a_row_with_flags_per_version() {
    let server = Server::start().await;
    authority(&server, "/root", None).await;
    regenerate_transitional(&server, "/root").await;
    let shell = Shell::of(&server);
    let (status, screen) = shell
        .on_terminal(&["certificates", "versions", "/root"])
        .end();
    assert_eq!(status, Some(0), "{screen}");
    let rows: Vec<_> = screen.lines().skip(1).collect();
    let flags = |row: &str| row.matches("yes").count();
    assert_eq!(
        rows.iter().map(|row| flags(row)).collect::<Vec<_>>(),
        [3, 2],
        "{screen}"
    );
}
