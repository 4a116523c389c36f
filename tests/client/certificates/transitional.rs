//! `keywright certificates transitional`.

use keywright_harness::{Server, Shell};
use serde_json::Value;

use super::{authority, summary};
use crate::json_of;

/// The ids of the transitional versions.
async fn flagged(server: &Server) -> Vec<Value> {
    let summary = summary(server, "/root").await;
    let versions = summary["versions"].as_array().unwrap().iter();
    let flagged = versions.filter(|version| version["transitional"] == true);
    flagged.map(|version| version["id"].clone()).collect()
}

#[tokio::test]
async fn the_flag_moves_to_a_version_to_the_latest_and_is_cleared() {
    let server = Server::start().await;
    let old = authority(&server, "/root", None).await["id"].clone();
    let new = server.regenerate("/root").await.expect(200).json()["id"].clone();
    let shell = Shell::of(&server);
    for (arguments, expected) in [
        (
            &["--version", old.as_str().unwrap()] as &[&str],
            vec![old.clone()],
        ),
        (&["--latest"], vec![new.clone()]),
        (&["--clear"], vec![]),
    ] {
        let arguments = [
            &["certificates", "transitional", "/root"] as &[&str],
            arguments,
        ]
        .concat();
        let run = shell.run(&arguments).expect(0);
        assert!(!run.output.contains("PRIVATE KEY"));
        assert_eq!(flagged(&server).await, expected, "{arguments:?}");
        let shown = json_of(run);
        assert_eq!(shown.as_array().unwrap().len(), 1 + expected.len());
    }
    let arguments = ["certificates", "transitional", "/root", "--latest"];
    let (status, screen) = shell.on_terminal(&arguments).end();
    assert_eq!(status, Some(0), "{screen}");
    assert_eq!(flagged(&server).await, [new]);
}

#[tokio::test]
async fn exactly_one_valid_target_is_required() {
    let server = Server::start().await;
    authority(&server, "/root", None).await;
    let shell = Shell::of(&server);
    for (arguments, status) in [
        (&[] as &[&str], 2),
        (&["--latest", "--clear"], 2),
        (&["--version", "no id"], 1),
        (&["--version", "0d8c5e9e-0a0f-4f9d-8b1f-2c1f0f1d3a55"], 1),
    ] {
        let arguments = [
            &["certificates", "transitional", "/root"] as &[&str],
            arguments,
        ]
        .concat();
        shell.run(&arguments).expect(status);
    }
    assert_eq!(flagged(&server).await, Vec::<Value>::new());
}
