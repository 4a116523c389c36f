//! Running an import again after it was killed.

use std::{
    fmt::Write,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use keywright_harness::{Server, Shell};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::runtime::Handle;

use crate::{
    given,
    stub::{Holder, Reply, Stub, hold},
};

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_import_that_runs_again_reaches_the_same_state() {
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

    let server = Arc::new(Server::start().await);
    let (held, holder) = hold();
    let shell = in_front_of(&server, holder).shell();
    given::file(&shell, "file", &file);
    let mut killed = shell.start(&["import", "file", "--parallel", "2"]);
    for _ in 0..2 {
        held.wait();
    }
    killed.kill().unwrap();
    killed.wait().unwrap();
    drop(held);
    assert_eq!(count(&server).await, SET_BEFORE_IT_IS_KILLED);

    let shell = Shell::of(&server);
    given::file(&shell, "file", &file);
    let again = shell.run(&["import", "file", "--skip-unchanged"]).expect(0);
    let summary: Value = serde_json::from_str(&again.output).unwrap();
    assert_eq!(summary["unchanged"], json!(SET_BEFORE_IT_IS_KILLED));
    assert_eq!(given::stored(&server, "").await, expected);

    let everything = shell.run(&["import", "file"]).expect(0);
    let summary: Value = serde_json::from_str(&everything.output).unwrap();
    assert_eq!(summary["set"], json!(ENTRIES + 2));
    assert_eq!(given::stored(&server, "").await, expected);
    assert_eq!(server.versions("/a/leaf").await.len(), 2);
}

#[tokio::test]
async fn skip_unchanged_sets_entries_that_differ_in_any_part() {
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

/// A proxy in front of a server. Forwards [`SET_BEFORE_IT_IS_KILLED`] requests. The last of these and all later ones block until
/// the test drops its end, and then get no response.
fn in_front_of(server: &Arc<Server>, holder: Holder) -> Stub {
    // The stub lives longer than the server, which is dropped with its test.
    let (server, runtime, count) = (
        Arc::downgrade(server),
        Handle::current(),
        AtomicUsize::new(0),
    );
    Stub::start(move |asked, _, _| {
        let forward = || {
            let server = server.upgrade().unwrap();
            let path = asked.line.strip_prefix("PUT ").unwrap();
            let request = server.authorized(Method::PUT, path);
            let request = request.body(asked.body.clone());
            runtime.block_on(server.send(request)).expect(200).body
        };
        let number = count.fetch_add(1, Ordering::SeqCst) + 1;
        if number < SET_BEFORE_IT_IS_KILLED {
            return Reply::new(200, &forward());
        }
        if number == SET_BEFORE_IT_IS_KILLED {
            forward();
        }
        holder.hold();
        Reply::lost()
    })
}

async fn count(server: &Server) -> usize {
    let found = server.get("/api/v1/data?path=").await.expect(200).json();
    found["credentials"].as_array().unwrap().len()
}

const ENTRIES: usize = 40;

/// The number of entries that are set before the import is killed: one of the two requests in progress succeeds.
const SET_BEFORE_IT_IS_KILLED: usize = 12;
