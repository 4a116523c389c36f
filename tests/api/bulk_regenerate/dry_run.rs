//! A dry run tells what would be regenerated, and does nothing.

use keywright_harness::{BadPlugin, Server};
use serde_json::json;

use super::{BULK_REGENERATE, authority, leaf, names};
use crate::given;

#[tokio::test]
async fn what_an_authority_signed_is_told_and_left_as_it_is() {
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
async fn what_a_plugin_made_is_told_while_the_plugin_is_still_there() {
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
async fn who_may_not_regenerate_all_of_it_is_told_nothing() {
    let server = Server::start().await;
    authority(&server, "/root", None).await;
    leaf(&server, "/leaf", "/root").await;
    let caller = server.as_client("app").await;
    let body = json!({"signed_by": "/root", "dry_run": true});
    caller.post(BULK_REGENERATE, body.clone()).await.expect(404);
    server.grant("/root", caller.actor(), &["read"]).await;
    caller.post(BULK_REGENERATE, body).await.expect(403);
}
