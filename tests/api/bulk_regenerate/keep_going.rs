//! Regenerating the other credentials if some can't be regenerated: `keep_going`.

use keywright_harness::{BadPlugin, Options, Server, Text};
use serde_json::{Value, json};

use super::{BULK_REGENERATE, authority, leaf};
use crate::{
    certificates::assert_signed_by,
    external_certificates::{self, Signing},
    given,
};

/// Replaces a certificate with one whose signer is unknown, so that it can't be regenerated.
async fn set_with_unknown_signer(server: &Server, name: &str) {
    let elsewhere = external_certificates::authority("elsewhere");
    let stuck = elsewhere.sign_authority("stuck");
    let value = json!({"certificate": stuck.certificate, "ca": elsewhere.certificate});
    given::set(server, name, "certificate", value).await;
}

/// Returns the response, and asserts that a dry run predicts it.
async fn keep_going(server: &Server, mut body: Value) -> Value {
    body["keep_going"] = json!(true);
    let mut dry_run = body.clone();
    dry_run["dry_run"] = json!(true);
    let before = given::all_versions(server).await;
    let mut predicted = server
        .post(BULK_REGENERATE, dry_run)
        .await
        .expect(200)
        .json();
    assert_eq!(given::all_versions(server).await, before);
    let done = server.post(BULK_REGENERATE, body).await.expect(200).json();
    assert_eq!(predicted["dry_run"].take(), json!(true));
    predicted.as_object_mut().unwrap().remove("dry_run");
    assert_eq!(predicted, done);
    done
}

/// Returns the names of the failed credentials.
fn failed(response: &Value) -> Vec<&str> {
    let failed = response["failed_credentials"].as_array().unwrap();
    let names = failed.iter().map(|failed| failed["name"].as_str().unwrap());
    names.collect()
}

#[tokio::test]
async fn credentials_below_a_failing_middle_ca_fail_too() {
    let server = Server::start_with(&Options::default().hostile("", "")).await;
    let root = authority(&server, "/root", None).await;
    authority(&server, "/Middle", Some("/root")).await;
    authority(&server, "/lower", Some("/middle")).await;
    authority(&server, "/other", Some("/root")).await;
    leaf(&server, "/a", "/lower").await;
    leaf(&server, "/b", "/other").await;
    given::generate(&server, "/c", "hostile", json!({"ca": "/middle"})).await;
    set_with_unknown_signer(&server, "/middle").await;
    let before = given::versions(&server, "/Middle").await.len();
    let done = keep_going(&server, json!({"signed_by": "/root"})).await;
    assert_eq!(done["regenerated_credentials"], json!(["/b", "/other"]));
    assert_eq!(failed(&done), ["/a", "/c", "/lower", "/Middle"]);
    let reasons = &done["failed_credentials"];
    let below = |ca: &str| format!("its CA {ca} was not regenerated");
    assert_eq!(reasons[0]["error"], below("/lower"));
    assert_eq!(reasons[1]["error"], below("/Middle"));
    assert_eq!(reasons[2]["error"], below("/Middle"));
    let error = reasons[3]["error"].as_str().unwrap();
    error.assert_contains("is unknown");
    for (name, count) in [("/a", 1), ("/c", 1), ("/lower", 1), ("/Middle", before)] {
        let versions = given::versions(&server, name).await;
        assert_eq!(versions.len(), count, "{name}");
    }
    let other = given::newest(&server, "/other").await;
    assert_signed_by(&other, &root);
    assert_signed_by(&given::newest(&server, "/b").await, &other);
}

#[tokio::test]
async fn other_types_are_regenerated_if_a_generation_fails() {
    let server = Server::start_with(&Options::default().hostile("", "")).await;
    authority(&server, "/root", None).await;
    leaf(&server, "/leaf", "/root").await;
    given::generate(&server, "/a", "hostile", json!({"ca": "/root"})).await;
    let options = Options::default().hostile("", "generate = \"trap\"");
    let server = Server::start_in(server.stop().await, &options).await;
    let body = json!({"signed_by": "/root", "keep_going": true});
    let done = server.post(BULK_REGENERATE, body).await.expect(200).json();
    let expected = json!({
        "regenerated_credentials": ["/leaf"],
        "failed_credentials": [{"name": "/a", "error": "the plugin hostile trapped"}],
    });
    assert_eq!(done, expected);
    assert!(server.log().contains("request failed"));
    assert_eq!(given::versions(&server, "/leaf").await.len(), 2);
}

#[tokio::test]
async fn a_type_without_a_plugin_fails_and_others_are_regenerated() {
    let server = Server::start_with(&Options::default().hostile("", "")).await;
    authority(&server, "/root", None).await;
    leaf(&server, "/leaf", "/root").await;
    given::generate(&server, "/a", "hostile", json!({"ca": "/root"})).await;
    let server = Server::start_in(server.stop().await, &Options::default()).await;
    let done = keep_going(&server, json!({"signed_by": "/root"})).await;
    assert_eq!(done["regenerated_credentials"], json!(["/leaf"]));
    assert_eq!(failed(&done), ["/a"]);
}

#[tokio::test]
async fn without_failures_the_list_is_empty() {
    let server = Server::reused().await;
    authority(&server, "/root", None).await;
    leaf(&server, "/leaf", "/root").await;
    for (signed_by, regenerated) in [("/root", json!(["/leaf"])), ("/nowhere", json!([]))] {
        let done = keep_going(&server, json!({"signed_by": signed_by})).await;
        let expected = json!({"regenerated_credentials": regenerated, "failed_credentials": []});
        assert_eq!(done, expected);
    }
}

#[tokio::test]
async fn nothing_is_written_if_all_credentials_fail() {
    let server = Server::reused().await;
    authority(&server, "/root", None).await;
    leaf(&server, "/leaf", "/root").await;
    set_with_unknown_signer(&server, "/leaf").await;
    let before = given::all_versions(&server).await;
    let done = keep_going(&server, json!({"signed_by": "/root"})).await;
    assert_eq!(failed(&done), ["/leaf"]);
    assert_eq!(given::all_versions(&server).await, before);
}

#[tokio::test]
async fn the_audit_trail_identifies_only_written_versions() {
    let server = Server::reused().await;
    authority(&server, "/root", None).await;
    for name in ["/leaf", "/stuck"] {
        leaf(&server, name, "/root").await;
    }
    set_with_unknown_signer(&server, "/stuck").await;
    keep_going(&server, json!({"signed_by": "/root"})).await;
    let written = given::newest(&server, "/leaf").await["id"].take();
    let trail = server.audit_trail();
    let lines: Vec<_> = trail
        .lines()
        .filter(|line| line.contains("bulk-regenerate"))
        .collect();
    let with_version = lines
        .iter()
        .filter(|line| line.contains(written.as_str().unwrap()));
    assert_eq!(with_version.count(), 1, "{trail}");
    let stuck = given::newest(&server, "/stuck").await["id"].take();
    let stuck = stuck.as_str().unwrap();
    assert!(!lines.iter().any(|line| line.contains(stuck)), "{trail}");
}

#[tokio::test]
async fn credentials_that_the_caller_may_not_write_fail() {
    let server = Server::reused().await;
    authority(&server, "/root", None).await;
    authority(&server, "/middle", Some("/root")).await;
    leaf(&server, "/below", "/middle").await;
    leaf(&server, "/mine", "/root").await;
    leaf(&server, "/theirs", "/root").await;
    let caller = server.as_client("app").await;
    let actor = caller.actor();
    server.grant("/root", actor, &["read"]).await;
    server.grant("/middle", actor, &["read"]).await;
    server.grant("/below", actor, &["write"]).await;
    server.grant("/mine", actor, &["write"]).await;
    for keeps_going in [false, true] {
        // A failure would name a credential that the caller may not read.
        let body = json!({"signed_by": "/root", "keep_going": keeps_going});
        let error = caller.post(BULK_REGENERATE, body).await.expect(403).error();
        assert_eq!(error, FORBIDDEN);
    }
    server.grant("/theirs", actor, &["read"]).await;
    let body = json!({"signed_by": "/root"});
    caller.post(BULK_REGENERATE, body).await.expect(403);
    assert_eq!(given::versions(&server, "/mine").await.len(), 1);

    let failures = json!([
        {"name": "/below", "error": "its CA /middle was not regenerated"},
        {"name": "/middle", "error": FORBIDDEN},
        {"name": "/theirs", "error": FORBIDDEN},
    ]);
    for is_dry_run in [true, false] {
        let body = json!({"signed_by": "/root", "keep_going": true, "dry_run": is_dry_run});
        let done = caller.post(BULK_REGENERATE, body).await.expect(200).json();
        assert_eq!(done["regenerated_credentials"], json!(["/mine"]));
        assert_eq!(done["failed_credentials"], failures);
        let count = if is_dry_run { 1 } else { 2 };
        assert_eq!(given::versions(&server, "/mine").await.len(), count);
    }
    for name in ["/middle", "/below", "/theirs"] {
        assert_eq!(given::versions(&server, name).await.len(), 1);
    }
}

const FORBIDDEN: &str = "the caller may not write this credential";

// Errors that concern the whole request are returned despite `keep_going`.

#[tokio::test]
async fn a_missing_permission_to_read_a_ca_refuses_the_whole_request() {
    let server = Server::reused().await;
    authority(&server, "/root", None).await;
    authority(&server, "/middle", Some("/root")).await;
    leaf(&server, "/mine", "/root").await;
    leaf(&server, "/theirs", "/middle").await;
    let caller = server.as_client("app").await;
    let body = json!({"signed_by": "/root", "keep_going": true});
    for name in ["/mine", "/middle"] {
        server.grant(name, caller.actor(), &["write"]).await;
    }
    caller.post(BULK_REGENERATE, body.clone()).await.expect(404);
    server.grant("/root", caller.actor(), &["read"]).await;
    let error = caller.post(BULK_REGENERATE, body).await.expect(404).error();
    error.assert_lacks("/theirs");
    assert_eq!(given::versions(&server, "/mine").await.len(), 1);
}

#[tokio::test]
async fn a_plugin_still_in_use_refuses_the_whole_request() {
    let bad = BadPlugin::of("password");
    let server = bad.server().await;
    given::generate(&server, "/a", "password", json!({})).await;
    let body = json!({"generated_by": bad.digest(), "keep_going": true});
    let response = server.post(BULK_REGENERATE, body).await;
    response.expect_error(400, "configure another plugin");
}

#[tokio::test]
async fn keep_going_must_be_a_boolean() {
    let server = Server::reused().await;
    let body = json!({"signed_by": "/root", "keep_going": "maybe"});
    let response = server.post(BULK_REGENERATE, body).await;
    response.expect_error(400, "keep_going");
}
