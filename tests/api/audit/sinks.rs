//! The configuration section `audit`, and trail files that are not writable, deleted or moved.

use std::{
    fs::{self, OpenOptions},
    io::Write,
    os::unix::fs::{MetadataExt, OpenOptionsExt, symlink},
    process::Command,
};

use keywright_harness::{Options, Server, Text};
use rustix::fs::OFlags;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{events, parsed};

#[tokio::test]
async fn without_a_section_the_trail_is_json_on_standard_output() {
    let server = Server::start_with(&Options::default().audit("")).await;
    let response = server.get("/api/v1/data?name=/a").await.expect(404);
    // The harness writes standard output and the log to one file.
    let output = server.log();
    let events: Vec<Value> = output
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .filter(|line: &Value| line.get("resource_name").is_some())
        .collect();
    assert_eq!(events.len(), 1, "{output}");
    assert_eq!(events[0]["resource_name"], "/a");
    assert_eq!(
        events[0]["request_id"],
        response.header("x-request-id").unwrap()
    );
    assert!(!server.directory().join("audit.log").exists());
}

#[tokio::test]
async fn a_disabled_trail_is_logged() {
    let server = Server::start_with(&Options::default().audit("[audit]\nsink = \"off\"")).await;
    server.get("/api/v1/data?name=/a").await.expect(404);
    let log = server.log();
    log.assert_lacks("resource_name");
    log.assert_contains("the audit trail is off");
}

#[tokio::test]
async fn each_setting_can_be_given_in_the_environment() {
    let options = Options::default()
        .audit("")
        .environment("KEYWRIGHT_AUDIT__SINK", "file")
        .environment("KEYWRIGHT_AUDIT__FILE", "audit.log")
        .environment("KEYWRIGHT_AUDIT__HOST", "vault-7")
        .environment("KEYWRIGHT_AUDIT__SYNC", "true");
    let server = Server::start_with(&options).await;
    server.get("/api/v1/data?name=/a").await.expect(404);
    let events = parsed(&server.audit_trail());
    assert_eq!(events.len(), 1);
    assert_eq!(events[0]["destination"], "vault-7");
}

// Trail files that are not writable, deleted or moved.

fn options(settings: &str) -> Options {
    Options::default().audit(&format!("[audit]\nsink = \"file\"\n{settings}\n"))
}

/// Returns the name of each event's resource, in the order of the events.
fn names(events: &[serde_json::Value]) -> Vec<&str> {
    events
        .iter()
        .map(|event| event["resource_name"].as_str().unwrap_or_default())
        .collect()
}

#[tokio::test]
async fn the_file_is_private_and_appended_to_across_restarts() {
    let server = Server::start().await;
    server.set_value("/a", "v").await;
    let file = server.directory().join("audit.log");
    assert_eq!(fs::metadata(&file).unwrap().mode() & 0o777, 0o600);
    let server = Server::start_in(server.stop().await, &Options::default()).await;
    server.set_value("/b", "v").await;
    assert_eq!(names(&events(&server)), ["/a", "/b"]);
}

#[tokio::test]
async fn an_incomplete_line_is_not_joined_to_the_next() {
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("audit.log");
    fs::write(&file, "{\"time\":1,\"act").unwrap();
    let server = Server::start_in(directory, &Options::default()).await;
    server.set_value("/a", "v").await;
    server.set_value("/b", "v").await;
    let trail = server.audit_trail();
    let rest = trail.strip_prefix("{\"time\":1,\"act\n").unwrap();
    assert_eq!(names(&parsed(rest)), ["/a", "/b"]);
}

#[tokio::test]
async fn requests_fail_on_a_full_disk_and_events_are_written_later() {
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("audit.log");
    symlink("/dev/full", &file).unwrap();
    let server = Server::start_in(directory, &options("file = \"audit.log\"")).await;

    let withheld = server.set("/a", "value", json!("v")).await;
    assert_eq!(withheld.status, 500, "{}", withheld.body);
    assert!(withheld.error().contains("audit"), "{}", withheld.body);
    for _ in 0..3 {
        let refused = server.delete("/api/v1/data?name=/a").await;
        assert_eq!(refused.status, 503, "{}", refused.body);
        assert!(refused.header("retry-after").is_some());
        assert!(refused.error().contains("audit"), "{}", refused.body);
    }
    server.get("/health").await.expect(503);
    server.get("/info").await.expect(200);
    assert!(server.log().contains("No space left"), "{}", server.log());

    fs::remove_file(&file).unwrap();
    let message = server.reopen_audit_trail().await;
    message.assert_contains("\"INFO\"");
    server.get("/api/v1/data?name=/a").await.expect(200);
    let events = events(&server);
    assert_eq!(names(&events), ["/a", "/a"]);
    assert_eq!(events[0]["action"], "SET");
    assert_eq!(
        events[0]["request_id"],
        withheld.header("x-request-id").unwrap()
    );
    assert_eq!(events[1]["action"], "GET");
}

#[tokio::test]
async fn with_on_failure_continue_requests_succeed_on_a_full_disk() {
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("audit.log");
    symlink("/dev/full", &file).unwrap();
    let settings = "file = \"audit.log\"\non_failure = \"continue\"";
    let server = Server::start_in(directory, &options(settings)).await;
    for name in ["/a", "/b", "/c"] {
        server.set_value(name, "v").await;
    }
    let log = server.log();
    let reported = log
        .matches("continuing a request without its audit events")
        .count();
    assert_eq!(reported, 3, "{log}");
    fs::remove_file(&file).unwrap();
    server.reopen_audit_trail().await;
    server.set_value("/d", "v").await;
    assert_eq!(names(&events(&server)), ["/a", "/b", "/c", "/d"]);
}

#[tokio::test]
async fn a_deleted_file_is_recreated() {
    let server = Server::start().await;
    server.set_value("/a", "v").await;
    fs::remove_file(server.directory().join("audit.log")).unwrap();
    server.set_value("/b", "v").await;
    assert_eq!(names(&events(&server)), ["/b"]);
}

#[tokio::test]
async fn requests_fail_while_the_folder_of_the_trail_is_missing() {
    let directory = TempDir::new().unwrap();
    let folder = directory.path().join("trail");
    fs::create_dir(&folder).unwrap();
    let server = Server::start_in(directory, &options("file = \"trail/audit.log\"")).await;
    server.set_value("/a", "v").await;

    fs::remove_dir_all(&folder).unwrap();
    let withheld = server.get("/api/v1/data?name=/a").await;
    assert_eq!(withheld.status, 500, "{}", withheld.body);
    let refused = server.set("/b", "value", json!("v")).await;
    assert_eq!(refused.status, 503, "{}", refused.body);

    fs::create_dir(&folder).unwrap();
    server.get("/api/v1/data?name=/b").await.expect(404);
    let trail = fs::read_to_string(folder.join("audit.log")).unwrap();
    assert_eq!(names(&parsed(&trail)), ["/a", "/b"]);
}

#[tokio::test]
async fn a_named_pipe_without_a_reader_fails_like_a_full_disk() {
    let folder = TempDir::new().unwrap();
    let pipe = folder.path().join("audit");
    let made = Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(made.success());
    let open = || {
        OpenOptions::new()
            .read(true)
            .write(true)
            .open(&pipe)
            .unwrap()
    };
    let audit = format!("[audit]\nsink = \"file\"\nfile = \"{}\"", pipe.display());
    let refusal = Server::refusal(&Options::default().audit(&audit));
    refusal.assert_contains("no process reads the named pipe");
    let reader = open();
    let server = Server::start_with(&Options::default().audit(&audit)).await;
    server.set_value("/a", "v").await;
    drop(reader);
    let withheld = server.set("/a", "value", json!("v")).await;
    assert_eq!(withheld.status, 500, "{}", withheld.body);
    let _reader = open();
    server.get("/api/v1/data?name=/a").await.expect(200);
}

#[test]
fn a_trail_that_can_not_be_synced_is_refused_at_start() {
    // It accepts events, but no request to flush them.
    let audit = "[audit]\nsink = \"file\"\nfile = \"/dev/null\"\nsync = true";
    let refusal = Server::refusal(&Options::default().audit(audit));
    refusal.assert_contains("/dev/null: audit.sync requires that it is a regular file");
}

#[tokio::test]
async fn a_server_stops_while_a_reopened_pipe_is_full() {
    let server = Server::start().await;
    let file = server.directory().join("audit.log");
    fs::remove_file(&file).unwrap();
    let made = Command::new("mkfifo").arg(&file).status().unwrap();
    assert!(made.success());
    let mut pipe = OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(OFlags::NONBLOCK.bits().cast_signed())
        .open(&file)
        .unwrap();
    server.reopen_audit_trail().await;
    while pipe.write(b"x").is_ok() {}
    let withheld = server.get("/api/v1/data?name=/a").await;
    assert_eq!(withheld.status, 500, "{}", withheld.body);
    server.stop().await;
}

#[tokio::test]
async fn events_go_to_a_moved_file_until_the_trail_is_reopened() {
    let server = Server::start().await;
    let file = server.directory().join("audit.log");
    let moved = server.directory().join("audit.log.1");
    server.set_value("/a", "v").await;
    fs::rename(&file, &moved).unwrap();
    server.set_value("/b", "v").await;
    server.reopen_audit_trail().await;
    server.set_value("/c", "v").await;
    let old = fs::read_to_string(&moved).unwrap();
    assert_eq!(names(&parsed(&old)), ["/a", "/b"]);
    assert_eq!(names(&events(&server)), ["/c"]);
}

#[tokio::test]
async fn after_a_failed_reopening_events_go_to_the_old_file() {
    let server = Server::start().await;
    let file = server.directory().join("audit.log");
    let moved = server.directory().join("audit.log.1");
    fs::rename(&file, &moved).unwrap();
    fs::create_dir(&file).unwrap();
    let message = server.reopen_audit_trail().await;
    message.assert_contains("could not reopen the audit trail");
    server.set_value("/a", "v").await;
    let old = fs::read_to_string(&moved).unwrap();
    assert_eq!(names(&parsed(&old)), ["/a"]);
    fs::remove_dir(&file).unwrap();
    server.set_value("/b", "v").await;
    assert_eq!(names(&events(&server)), ["/b"]);
}

#[tokio::test]
async fn other_processes_may_append_to_the_file() {
    let server = Server::start().await;
    server.set_value("/a", "v").await;
    let mut other = OpenOptions::new()
        .append(true)
        .open(server.directory().join("audit.log"))
        .unwrap();
    other
        .write_all(b"{\"resource_name\":\"theirs\"}\n")
        .unwrap();
    server.set_value("/b", "v").await;
    assert_eq!(names(&events(&server)), ["/a", "theirs", "/b"]);
}
