//! Regenerating the other credentials if some can't be regenerated: `keep_going`.

use keywright_harness::{BadPlugin, Options, Server, Text};
use serde_json::{Value, json};

use super::{BULK_REGENERATE, patient, slow_leaves};
use crate::{
    certificates::assert_signed_by,
    external_certificates::{self, Signing},
};

/// Replaces a certificate with one whose signer is unknown, so that it can't be regenerated.
async fn set_with_unknown_signer(server: &Server, name: &str) {
    let elsewhere = external_certificates::authority("elsewhere");
    let stuck = elsewhere.sign_authority("stuck");
    let value = json!({"certificate": stuck.certificate, "ca": elsewhere.certificate});
    server.stored(name, "certificate", value).await;
}

/// Returns the response, and asserts that a dry run predicts it.
async fn keep_going(server: &Server, mut body: Value) -> Value {
    body["keep_going"] = json!(true);
    let mut dry_run = body.clone();
    dry_run["dry_run"] = json!(true);
    let before = server.all_versions().await;
    let predicted = server.post(BULK_REGENERATE, dry_run).await;
    assert_eq!(server.all_versions().await, before);
    let done = server.post(BULK_REGENERATE, body).await.expect(200).json();
    let mut expected = done.clone();
    expected["dry_run"] = json!(true);
    assert_eq!(predicted.expect(200).json(), expected);
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
    let root = server.generate_authority("/root", None).await;
    server.generate_authority("/Middle", Some("/root")).await;
    server.generate_authority("/lower", Some("/middle")).await;
    server.generate_authority("/other", Some("/root")).await;
    server.generate_leaf("/a", "/lower").await;
    server.generate_leaf("/b", "/other").await;
    let parameters = json!({"ca": "/middle"});
    server.generated("/c", "hostile", parameters).await;
    set_with_unknown_signer(&server, "/middle").await;
    let before = server.versions("/Middle").await.len();
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
        let versions = server.versions(name).await;
        assert_eq!(versions.len(), count, "{name}");
    }
    let other = server.newest("/other").await;
    assert_signed_by(&other, &root);
    assert_signed_by(&server.newest("/b").await, &other);
}

#[tokio::test]
async fn other_types_are_regenerated_if_a_plugin_fails_or_is_missing() {
    let server = Server::start_with(&Options::default().hostile("", "")).await;
    server.generate_authority("/root", None).await;
    server.generate_leaf("/leaf", "/root").await;
    let parameters = json!({"ca": "/root"});
    server.generated("/a", "hostile", parameters).await;
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
    assert_eq!(server.versions("/leaf").await.len(), 2);

    let server = Server::start_in(server.stop().await, &Options::default()).await;
    let done = keep_going(&server, json!({"signed_by": "/root"})).await;
    assert_eq!(done["regenerated_credentials"], json!(["/leaf"]));
    assert_eq!(failed(&done), ["/a"]);
}

#[tokio::test]
async fn without_failures_the_list_is_empty() {
    let server = Server::reused().await;
    server.generate_authority("/root", None).await;
    server.generate_leaf("/leaf", "/root").await;
    for (signed_by, regenerated) in [("/root", json!(["/leaf"])), ("/nowhere", json!([]))] {
        let done = keep_going(&server, json!({"signed_by": signed_by})).await;
        let expected = json!({"regenerated_credentials": regenerated, "failed_credentials": []});
        assert_eq!(done, expected);
    }
}

#[tokio::test]
async fn nothing_is_written_if_all_credentials_fail() {
    let server = Server::reused().await;
    server.generate_authority("/root", None).await;
    server.generate_leaf("/leaf", "/root").await;
    set_with_unknown_signer(&server, "/leaf").await;
    let before = server.all_versions().await;
    let done = keep_going(&server, json!({"signed_by": "/root"})).await;
    assert_eq!(failed(&done), ["/leaf"]);
    assert_eq!(server.all_versions().await, before);
}

#[tokio::test]
async fn only_the_credentials_of_a_ca_that_keeps_changing_fail() {
    let server = Server::start_with(&patient()).await;
    let root = external_certificates::authority("root");
    server.stored("/root", "certificate", root.value()).await;
    let slow = slow_leaves(&server, &root, 2).await;
    let changing = external_certificates::authority("changing");
    let change = || server.stored("/changing", "certificate", changing.value());
    change().await;
    let leaf = changing.sign_leaf("leaf");
    let value = json!({"certificate": leaf.certificate, "ca_name": "/changing"});
    server.stored(&slow[0], "certificate", value).await;
    let body = json!({"signed_by": "/root", "keep_going": true});
    let done = tokio::select! {
        done = server.post(BULK_REGENERATE, body) => done.expect(200).json(),
        () = async { loop { change().await; } } => unreachable!(),
    };
    assert_eq!(failed(&done), [slow[0].as_str()]);
}

#[tokio::test]
async fn the_audit_trail_identifies_only_written_versions() {
    let server = Server::reused().await;
    server.generate_authority("/root", None).await;
    for name in ["/leaf", "/stuck"] {
        server.generate_leaf(name, "/root").await;
    }
    set_with_unknown_signer(&server, "/stuck").await;
    keep_going(&server, json!({"signed_by": "/root"})).await;
    let written = server.newest("/leaf").await["id"].take();
    let trail = server.audit_trail();
    let lines: Vec<_> = trail
        .lines()
        .filter(|line| line.contains("bulk-regenerate"))
        .collect();
    let with_version = lines
        .iter()
        .filter(|line| line.contains(written.as_str().unwrap()));
    assert_eq!(with_version.count(), 1, "{trail}");
    let stuck = server.newest("/stuck").await["id"].take();
    let stuck = stuck.as_str().unwrap();
    assert!(!lines.iter().any(|line| line.contains(stuck)), "{trail}");
}

#[tokio::test]
async fn credentials_that_the_caller_may_not_write_fail() {
    let server = Server::reused().await;
    server.generate_authority("/root", None).await;
    server.generate_authority("/middle", Some("/root")).await;
    server.generate_leaf("/below", "/middle").await;
    server.generate_leaf("/mine", "/root").await;
    server.generate_leaf("/theirs", "/root").await;
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
    assert_eq!(server.versions("/mine").await.len(), 1);

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
        assert_eq!(server.versions("/mine").await.len(), count);
    }
    for name in ["/middle", "/below", "/theirs"] {
        assert_eq!(server.versions(name).await.len(), 1);
    }
}

const FORBIDDEN: &str = "the caller may not write this credential";

// Errors that concern the whole request are returned despite `keep_going`.

#[tokio::test]
async fn a_missing_permission_to_read_a_ca_refuses_the_whole_request() {
    let server = Server::reused().await;
    server.generate_authority("/root", None).await;
    server.generate_authority("/middle", Some("/root")).await;
    server.generate_leaf("/mine", "/root").await;
    server.generate_leaf("/theirs", "/middle").await;
    let caller = server.as_client("app").await;
    let body = json!({"signed_by": "/root", "keep_going": true});
    for name in ["/mine", "/middle"] {
        server.grant(name, caller.actor(), &["write"]).await;
    }
    caller.post(BULK_REGENERATE, body.clone()).await.expect(404);
    server.grant("/root", caller.actor(), &["read"]).await;
    let error = caller.post(BULK_REGENERATE, body).await.expect(404).error();
    error.assert_lacks("/theirs");
    assert_eq!(server.versions("/mine").await.len(), 1);
}

#[tokio::test]
async fn a_plugin_still_in_use_refuses_the_whole_request() {
    let bad = BadPlugin::of("password");
    let server = bad.server().await;
    server.generated("/a", "password", json!({})).await;
    let body = json!({"generated_by": bad.digest(), "keep_going": true});
    let response = server.post(BULK_REGENERATE, body).await;
    response.expect_error(400, "configure another plugin");
}
