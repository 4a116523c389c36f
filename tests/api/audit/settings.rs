//! The section `audit` of the configuration.

use keywright_harness::{Options, Server};
use reqwest::Method;
use serde_json::Value;

use super::{events, parsed};

#[tokio::test]
async fn without_a_section_the_trail_is_json_on_standard_output() {
    let server = Server::start_with(&Options::default().audit("")).await;
    let answer = server.get("/api/v1/data?name=/a").await.expect(404);
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
        answer.header("x-request-id").unwrap()
    );
    assert!(!server.directory().join("audit.log").exists());
}

#[tokio::test]
async fn a_disabled_trail_is_logged() {
    let server = Server::start_with(&Options::default().audit("[audit]\nsink = \"off\"")).await;
    server.get("/api/v1/data?name=/a").await.expect(404);
    let log = server.log();
    assert!(!log.contains("resource_name"), "{log}");
    assert!(log.contains("the audit trail is off"), "{log}");
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

#[test]
fn start_fails_with_invalid_audit_settings() {
    for (settings, words) in [
        ("sink = \"file\"", "audit.file is required"),
        ("file = \"audit.log\"", "if audit.sink is"),
        ("sink = \"off\"\nfile = \"audit.log\"", "if audit.sink is"),
        (
            "sink = \"syslog\"",
            "audit.sink: must be one of file, off, stdout",
        ),
        ("format = \"xml\"", "audit.format: must be one of cef, json"),
        (
            "on_failure = \"ignore\"",
            "audit.on_failure: must be one of",
        ),
        ("trusted_proxies = [\"proxy\"]", "trusted_proxies"),
        ("bogus = 1", "bogus"),
        (
            "sink = \"file\"\nfile = \"nowhere/audit.log\"",
            "opening the audit trail",
        ),
        ("sink = \"file\"\nfile = \".\"", "opening the audit trail"),
    ] {
        let options = Options::default().audit(&format!("[audit]\n{settings}"));
        let said = Server::refusal(&options);
        assert!(said.contains(words), "{settings}: {said}");
    }
}

#[tokio::test]
async fn simultaneous_requests_write_whole_lines() {
    let server = Server::start().await;
    let requests = (0..200).map(|number| {
        let path = format!("/api/v1/data?name=/{number}");
        let request = server.authorized(Method::GET, &path);
        tokio::spawn(async move { request.send().await.unwrap().status().as_u16() })
    });
    let requests: Vec<_> = requests.collect();
    for request in requests {
        assert_eq!(request.await.unwrap(), 404);
    }
    let mut names: Vec<String> = events(&server)
        .iter()
        .map(|event| event["resource_name"].as_str().unwrap().to_owned())
        .collect();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), 200);
}
