//! An import that was killed is run again.

use std::{fmt::Write, time::Duration};

use keywright_harness::{Server, Shell};
use serde_json::{Value, json};

use crate::given;

#[tokio::test]
async fn killed_in_the_middle_and_run_again_it_ends_in_the_same_state() {
    let source = Server::start().await;
    given::certificate(&source, "/z/ca", json!({"is_ca": true})).await;
    given::certificate(&source, "/a/leaf", json!({"ca": "/z/ca"})).await;
    let shell = Shell::of(&source);
    shell.run(&["export", "--file", "export.yml"]).expect(0);
    let mut file = std::fs::read_to_string(shell.file("export.yml")).unwrap();
    for index in 0..ENTRIES {
        writeln!(
            file,
            "- {{name: /many/{index}, type: user, value: {{password: p{index}}}, metadata: {{i: {index}}}}}"
        )
        .unwrap();
    }

    let undisturbed = Server::start().await;
    let shell = Shell::of(&undisturbed);
    given::file(&shell, "file", &file);
    shell.run(&["import", "file"]).expect(0);
    let expected = given::stored(&undisturbed, "").await;
    assert_eq!(expected.as_object().unwrap().len(), ENTRIES + 2);

    let server = Server::start().await;
    let shell = Shell::of(&server);
    given::file(&shell, "file", &file);
    let mut killed = shell.start(&["import", "file", "--parallel", "2"]);
    while count(&server).await < 10 {
        assert!(killed.try_wait().unwrap().is_none(), "it has ended");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    killed.kill().unwrap();
    killed.wait().unwrap();
    let halfway = count(&server).await;
    assert!(halfway < ENTRIES, "{halfway}");

    let again = shell.run(&["import", "file", "--skip-unchanged"]).expect(0);
    let summary: Value = serde_json::from_str(&again.output).unwrap();
    // Of those that were on their way when it was killed, each may have been set since.
    let unchanged = summary["unchanged"].as_u64().unwrap();
    let unchanged = usize::try_from(unchanged).unwrap();
    assert!((halfway..=halfway + 2).contains(&unchanged), "{unchanged}");
    assert_eq!(given::stored(&server, "").await, expected);

    let everything = shell.run(&["import", "file"]).expect(0);
    let summary: Value = serde_json::from_str(&everything.output).unwrap();
    assert_eq!(summary["set"], json!(ENTRIES + 2));
    assert_eq!(given::stored(&server, "").await, expected);
    assert_eq!(server.versions("/a/leaf").await.len(), 2);
}

#[tokio::test]
async fn what_differs_in_any_part_is_set_again() {
    let server = Server::start().await;
    let shell = Shell::of(&server);
    let mut versions = 0;
    for (entry, is_set) in [
        ("{name: /a, type: json, value: {a: 1, b: [x]}}", true),
        ("{name: /A, type: json, value: {b: [x], a: 1}}", false),
        ("{name: /a, type: json, value: {b: [x], a: 1.0}}", true),
        ("{name: /a, type: json, value: {b: [x], a: '1.0'}}", true),
        (
            "{name: /a, type: json, value: {b: [x], a: '1.0'}, metadata: {m: 1}}",
            true,
        ),
        (
            "{name: /a, type: json, value: {b: [x], a: '1.0'}, metadata: {m: 1}}",
            false,
        ),
        (
            "{name: /a, type: json, value: {b: [x]}, metadata: {m: 1}}",
            true,
        ),
    ] {
        given::file(&shell, "file", &format!("credentials: [{entry}]\n"));
        let run = shell.run(&["import", "file", "--skip-unchanged"]).expect(0);
        let summary: Value = serde_json::from_str(&run.output).unwrap();
        assert_eq!(summary["set"], json!(usize::from(is_set)), "{entry}");
        versions += usize::from(is_set);
        assert_eq!(server.versions("/a").await.len(), versions, "{entry}");
    }
}

async fn count(server: &Server) -> usize {
    let found = server.get("/api/v1/data?path=").await.expect(200).json();
    found["credentials"].as_array().unwrap().len()
}

const ENTRIES: usize = 300;
