//! Runs of retention: audit events, read-only mode, concurrent writers, and several servers.

use std::{fs, os::unix::fs::symlink, sync::Arc};

use keywright_harness::{Server, Text, until};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{after_a_run, events, ids, options, runs, set_times, trust_the_clock_at_once, values};
use crate::{certificates::Certificate, given};

#[tokio::test]
async fn each_deleted_version_is_audited_with_its_policy() {
    let limits = "versions_max = 2\nage_days_max = 36500";
    let server = Server::start_with(&options(&[("/A/*", limits)])).await;
    let all = set_times(&server, "/a/b", 4).await;
    after_a_run(&[&server]).await;
    let events = events(&server);
    let reported: Vec<&str> = events
        .iter()
        .map(|event| event["version_id"].as_str().unwrap())
        .collect();
    assert_eq!(reported, [&all[0], &all[1]]);
    let event = &events[0];
    let mut expected = json!({
        "actor": "keywright:retention",
        "subject": "retention",
        "authentication": "server",
        "method": null,
        "request": null,
        "status": 200,
        "source": null,
        "peer": null,
        "action": "DELETE_BY_RETENTION",
        "operation": "delete",
        "resource_name": "/a/b",
        "version_id": all[0],
        "request_details": {"policy": "/A/*", "versions_max": 2, "age_days_max": 36_500},
    });
    for field in ["time", "request_id", "destination", "resource_id"] {
        assert!(!event[field].is_null(), "{field}");
        expected[field] = event[field].clone();
    }
    assert_eq!(*event, expected);
}

#[tokio::test]
async fn cef_events_of_retention_have_the_action_as_the_request() {
    let cef = "[audit]\nsink = \"file\"\nfile = \"audit.log\"\nformat = \"cef\"";
    let options = options(&[("/a", "versions_max = 1")]).audit(cef);
    let server = Server::start_with(&options).await;
    let all = set_times(&server, "/a", 2).await;
    after_a_run(&[&server]).await;
    let trail = server.audit_trail();
    let lines = trail.lines();
    let lines: Vec<&str> = lines.filter(|line| line.contains("RETENTION")).collect();
    let [line] = lines[..] else {
        panic!("one event: {trail}")
    };
    for part in [
        "|DELETE_BY_RETENTION|DELETE_BY_RETENTION|0|rt=",
        " suser=retention suid=keywright:retention ",
        "cs1=server cs3Label=",
        &format!("cs3={} ", all[0]),
        "cs4=200",
        "cs2=/a ",
        "deviceAction=DELETE_BY_RETENTION ",
        r#"cs6={"policy":"/a","versions_max":1} "#,
        "flexString1=delete",
    ] {
        line.assert_contains(part);
    }
    for part in [" request=", "requestMethod", " src=", "flexString2"] {
        line.assert_lacks(part);
    }
}

#[tokio::test]
async fn nothing_is_deleted_while_the_trail_cannot_be_written() {
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("audit.log");
    symlink("/dev/full", &file).unwrap();
    let settings = "[audit]\nsink = \"file\"\nfile = \"audit.log\"\non_failure = \"continue\"";
    let options = options(&[("/a", "versions_max = 1")]).audit(settings);
    let server = Server::start_in(directory, &options).await;
    set_times(&server, "/a", 3).await;
    until("failed runs", async || failed_runs(&server).await >= 2.0).await;
    assert_eq!(values(&server, "/a").await, ["2", "1", "0"]);
    assert!(
        server
            .log()
            .contains("retention stopped because audit events could not be written")
    );
    fs::remove_file(&file).unwrap();
    server.reopen_audit_trail().await;
    after_a_run(&[&server]).await;
    assert_eq!(values(&server, "/a").await, ["2"]);
    let deleted: Vec<Value> = events(&server)
        .into_iter()
        .filter(|event| event["status"] == 200)
        .collect();
    // A deletion that was audited but not executed has a second event, which reverts the first.
    let reverted = events(&server).len() - deleted.len();
    assert_eq!(deleted.len(), 2 + reverted);
}

#[tokio::test]
async fn versions_are_deleted_without_an_audit_trail() {
    let options = options(&[("/a", "versions_max = 1")]).audit("[audit]\nsink = \"off\"");
    let server = Server::start_with(&options).await;
    server.set_value("/a", "old").await;
    server.set_value("/a", "new").await;
    after_a_run(&[&server]).await;
    assert_eq!(values(&server, "/a").await, ["new"]);
}

async fn failed_runs(server: &Server) -> f64 {
    let labels = [("outcome", "failed")];
    let scrape = server.scrape().await;
    scrape.sum(super::RUNS, &labels).unwrap_or_default()
}

#[tokio::test]
async fn read_only_mode_postpones_retention() {
    let server = Server::start_with(&options(&[("/a", "age_days_max = 1")])).await;
    trust_the_clock_at_once(&server).await;
    set_times(&server, "/a", 3).await;
    server.set_read_only(true).await;
    let days = "update credential_version set created_at = created_at - 2 * 86400000";
    server.run_sql(days).await;
    let pauses = || server.log().matches("paused in read-only mode").count();
    let before = pauses();
    // One check may precede the change of the ages, but not two.
    until("pauses", async || pauses() >= before + 2).await;
    assert_eq!(values(&server, "/a").await, ["2", "1", "0"]);
    server.set_read_only(false).await;
    after_a_run(&[&server]).await;
    assert_eq!(values(&server, "/a").await, ["2"]);
}

#[tokio::test]
async fn reads_and_writes_succeed_during_retention() {
    let server = Server::start_with(&options(&[("/*", "versions_max = 1")])).await;
    let server = Arc::new(server);
    let writers = (0..4).map(|writer| {
        let server = Arc::clone(&server);
        tokio::spawn(async move {
            let name = format!("/{writer}");
            let mut newest = String::new();
            for number in 0..WRITES {
                newest = given::id(&server.set_value(&name, &number.to_string()).await);
                let read = server.newest(&name).await;
                assert_eq!(given::id(&read), newest);
            }
            (name, newest)
        })
    });
    let writers: Vec<_> = writers.collect();
    let root = Certificate::generate_root(&server, "/root").await;
    for _ in 0..ROTATIONS {
        let old = given::id(&root.current().await[0]);
        let transitional = json!({"set_as_transitional": true});
        let new = root.regenerate(transitional).await.expect(200).json();
        root.move_transitional(json!(old)).await.expect(200);
        root.move_transitional(json!(null)).await.expect(200);
        assert_eq!(given::id(&root.current().await[0]), given::id(&new));
    }
    for writer in writers {
        let (name, newest) = writer.await.unwrap();
        after_a_run(&[&server]).await;
        assert_eq!(ids(&server, &name).await, [newest]);
    }
    assert_eq!(ids(&server, "/root").await.len(), 1);
    for status in ["409", "503"] {
        let log = server.audit_trail();
        log.assert_lacks(&format!("\"status\":{status}"));
    }
}

const WRITES: usize = 150;
const ROTATIONS: usize = 30;

#[tokio::test]
async fn two_servers_delete_each_version_once_even_if_one_is_killed() {
    let Some(postgres) = keywright_test_postgres::shared() else {
        return;
    };
    let storage = format!("url = \"{}\"", postgres.new_database());
    let options = options(&[("/a/*", "versions_max = 1")]).storage(&storage);
    let one = Server::start_with(&options).await;
    let two = Server::start_with(&options).await;
    for number in 0..8 {
        set_times(&one, &format!("/a/{number}"), 4).await;
    }
    after_a_run(&[&one, &two]).await;
    let mut reported: Vec<String> = Vec::new();
    for event in [events(&one), events(&two)].concat() {
        assert_eq!(event["status"], 200);
        reported.push(event["version_id"].as_str().unwrap().to_owned());
    }
    assert_eq!(reported.len(), 8 * 3);
    reported.sort();
    reported.dedup();
    assert_eq!(reported.len(), 8 * 3);
    drop(one.kill());
    set_times(&two, "/a/0", 2).await;
    let before = runs(&[&two]).await;
    until("runs", async || runs(&[&two]).await >= before + 2.0).await;
    assert_eq!(ids(&two, "/a/0").await.len(), 1);
}
