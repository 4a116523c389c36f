//! Files that cannot be written, are deleted, or are moved.

use std::{
    fs::{self, OpenOptions},
    io::Write,
    os::unix::fs::{MetadataExt, symlink},
};

use keywright_harness::{Options, Server};
use serde_json::json;
use tempfile::TempDir;

use super::{events, parsed};
use crate::given;

fn options(settings: &str) -> Options {
    Options::default().audit(&format!("[audit]\nsink = \"file\"\n{settings}\n"))
}

/// The names in events, in their order.
fn names(events: &[serde_json::Value]) -> Vec<&str> {
    events
        .iter()
        .map(|event| event["resource_name"].as_str().unwrap_or_default())
        .collect()
}

#[tokio::test]
async fn the_file_is_private_and_appended_to_across_restarts() {
    let server = Server::start().await;
    given::set_value(&server, "/a", "v").await;
    let file = server.directory().join("audit.log");
    assert_eq!(fs::metadata(&file).unwrap().mode() & 0o777, 0o600);
    let server = Server::start_in(server.stop().await, &Options::default()).await;
    given::set_value(&server, "/b", "v").await;
    assert_eq!(names(&events(&server)), ["/a", "/b"]);
}

#[tokio::test]
async fn events_of_completed_requests_survive_a_kill() {
    let server = Server::start().await;
    for name in ["/a", "/b", "/c"] {
        given::set_value(&server, name, "v").await;
    }
    let folder = server.kill();
    let trail = fs::read_to_string(folder.path().join("audit.log")).unwrap();
    assert_eq!(names(&parsed(&trail)), ["/a", "/b", "/c"]);
}

#[tokio::test]
async fn an_incomplete_line_is_not_joined_to_the_next() {
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("audit.log");
    fs::write(&file, "{\"time\":1,\"act").unwrap();
    let server = Server::start_in(directory, &Options::default()).await;
    given::set_value(&server, "/a", "v").await;
    given::set_value(&server, "/b", "v").await;
    let trail = server.audit_trail();
    let rest = trail.strip_prefix("{\"time\":1,\"act\n").unwrap();
    assert_eq!(names(&parsed(rest)), ["/a", "/b"]);
}

#[tokio::test]
async fn on_a_full_disk_requests_fail_and_buffered_events_come_first() {
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
    let said = server.reopen_audit_trail().await;
    assert!(said.contains("\"INFO\""), "{said}");
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
async fn with_continue_requests_succeed_on_a_full_disk() {
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("audit.log");
    symlink("/dev/full", &file).unwrap();
    let settings = "file = \"audit.log\"\non_failure = \"continue\"";
    let server = Server::start_in(directory, &options(settings)).await;
    for name in ["/a", "/b", "/c"] {
        given::set_value(&server, name, "v").await;
    }
    let log = server.log();
    let reported = log
        .matches("continuing a request without its audit events")
        .count();
    assert_eq!(reported, 3, "{log}");
    fs::remove_file(&file).unwrap();
    server.reopen_audit_trail().await;
    given::set_value(&server, "/d", "v").await;
    assert_eq!(names(&events(&server)), ["/a", "/b", "/c", "/d"]);
}

#[tokio::test]
async fn a_deleted_file_is_recreated() {
    let server = Server::start().await;
    given::set_value(&server, "/a", "v").await;
    fs::remove_file(server.directory().join("audit.log")).unwrap();
    given::set_value(&server, "/b", "v").await;
    assert_eq!(names(&events(&server)), ["/b"]);
}

#[tokio::test]
async fn requests_fail_while_the_trails_folder_is_missing() {
    let directory = TempDir::new().unwrap();
    let folder = directory.path().join("trail");
    fs::create_dir(&folder).unwrap();
    let server = Server::start_in(directory, &options("file = \"trail/audit.log\"")).await;
    given::set_value(&server, "/a", "v").await;

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
async fn a_moved_file_is_written_until_the_trail_is_reopened() {
    let server = Server::start().await;
    let file = server.directory().join("audit.log");
    let moved = server.directory().join("audit.log.1");
    given::set_value(&server, "/a", "v").await;
    fs::rename(&file, &moved).unwrap();
    given::set_value(&server, "/b", "v").await;
    server.reopen_audit_trail().await;
    given::set_value(&server, "/c", "v").await;
    let old = fs::read_to_string(&moved).unwrap();
    assert_eq!(names(&parsed(&old)), ["/a", "/b"]);
    assert_eq!(names(&events(&server)), ["/c"]);
}

#[tokio::test]
async fn a_trail_that_cannot_be_reopened_stays_in_the_old_file() {
    let server = Server::start().await;
    let file = server.directory().join("audit.log");
    let moved = server.directory().join("audit.log.1");
    fs::rename(&file, &moved).unwrap();
    fs::create_dir(&file).unwrap();
    let said = server.reopen_audit_trail().await;
    assert!(said.contains("could not reopen the audit trail"), "{said}");
    given::set_value(&server, "/a", "v").await;
    let old = fs::read_to_string(&moved).unwrap();
    assert_eq!(names(&parsed(&old)), ["/a"]);
}

#[tokio::test]
async fn others_may_append_to_the_file_too() {
    let server = Server::start().await;
    given::set_value(&server, "/a", "v").await;
    let mut other = OpenOptions::new()
        .append(true)
        .open(server.directory().join("audit.log"))
        .unwrap();
    other
        .write_all(b"{\"resource_name\":\"theirs\"}\n")
        .unwrap();
    given::set_value(&server, "/b", "v").await;
    assert_eq!(names(&events(&server)), ["/a", "theirs", "/b"]);
}
