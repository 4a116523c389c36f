//! Audit events of deleted versions, and retention without a working trail.

use std::{fs, os::unix::fs::symlink};

use keywright_harness::Server;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{after_a_run, events, options, poll, set_times, values};
use crate::given;

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
    let certificate = &events[0];
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
    for member in ["time", "request_id", "destination", "resource_id"] {
        assert!(!certificate[member].is_null(), "{member}");
        expected[member] = certificate[member].clone();
    }
    assert_eq!(*certificate, expected);
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
        assert!(line.contains(part), "{part}: {line}");
    }
}

#[tokio::test]
async fn nothing_is_deleted_while_the_trail_cannot_be_written() {
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("audit.log");
    symlink("/dev/full", &file).unwrap();
    let goes_on = "[audit]\nsink = \"file\"\nfile = \"audit.log\"\non_failure = \"continue\"";
    let options = options(&[("/a", "versions_max = 1")]).audit(goes_on);
    let server = Server::start_in(directory, &options).await;
    set_times(&server, "/a", 3).await;
    poll(async || failed_runs(&server).await >= 2.0).await;
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
    // Announced deletions that did not happen have events for both.
    let taken_back = events(&server).len() - deleted.len();
    assert_eq!(deleted.len(), 2 + taken_back);
}

#[tokio::test]
async fn versions_are_deleted_without_an_audit_trail() {
    let options = options(&[("/a", "versions_max = 1")]).audit("[audit]\nsink = \"off\"");
    let server = Server::start_with(&options).await;
    given::set_value(&server, "/a", "old").await;
    given::set_value(&server, "/a", "new").await;
    after_a_run(&[&server]).await;
    assert_eq!(values(&server, "/a").await, ["new"]);
}

async fn failed_runs(server: &Server) -> f64 {
    let labels = [("outcome", "failed")];
    let scrape = server.scrape().await;
    scrape.sum(super::RUNS, &labels).unwrap_or_default()
}
