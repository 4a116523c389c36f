//! A dry run lists the credentials to regenerate and changes nothing.

use keywright_harness::{BadPlugin, Server};
use serde_json::json;

use super::{BULK_REGENERATE, authority, leaf, names};
use crate::given;

#[tokio::test]
async fn a_dry_run_lists_signed_certificates_and_changes_nothing() {
    let server = Server::start().await;
    authority(&server, "/root", None).await;
    authority(&server, "/inner", Some("/root")).await;
    leaf(&server, "/leaf", "/inner").await;
    let before = given::everything(&server).await;
    let body = json!({"signed_by": "/root", "dry_run": true});
    let answer = server.post(BULK_REGENERATE, body).await.expect(200);
    let expected = json!({"regenerated_credentials": ["/inner", "/leaf"], "dry_run": true});
    assert_eq!(answer.json(), expected);
    assert_eq!(given::everything(&server).await, before);
    let body = json!({"signed_by": "/root", "dry_run": false});
    let answer = server.post(BULK_REGENERATE, body).await.expect(200);
    let expected = json!({"regenerated_credentials": ["/inner", "/leaf"]});
    assert_eq!(answer.json(), expected);
}

#[tokio::test]
async fn a_dry_run_lists_credentials_of_a_configured_plugin() {
    let bad = BadPlugin::of("password");
    let server = bad.server().await;
    for name in ["/B", "/a"] {
        given::generate(&server, name, "password", json!({})).await;
    }
    let before = given::everything(&server).await;
    let body = json!({"generated_by": bad.digest(), "dry_run": true});
    assert_eq!(
        names(&server.post(BULK_REGENERATE, body).await),
        ["/a", "/B"]
    );
    assert_eq!(given::everything(&server).await, before);
}

#[tokio::test]
async fn a_dry_run_without_all_permissions_is_refused() {
    let server = Server::start().await;
    authority(&server, "/root", None).await;
    leaf(&server, "/leaf", "/root").await;
    let caller = server.as_client("app").await;
    let body = json!({"signed_by": "/root", "dry_run": true});
    caller.post(BULK_REGENERATE, body.clone()).await.expect(404);
    server.grant("/root", caller.actor(), &["read"]).await;
    caller.post(BULK_REGENERATE, body).await.expect(403);
}
