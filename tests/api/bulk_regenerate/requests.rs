//! Valid and invalid requests.

use keywright_harness::Server;
use serde_json::json;

use super::{BULK_REGENERATE, authority, leaf, names};
use crate::given;

#[tokio::test]
async fn an_unknown_ca_or_one_without_leaves_yields_an_empty_list() {
    let server = Server::reused().await;
    authority(&server, "/root", None).await;
    for name in ["/root", "/nowhere", "nowhere", "/not a name", "//"] {
        let response = server.bulk_regenerate(name).await.expect(200);
        assert_eq!(response.json(), json!({"regenerated_credentials": []}));
    }
    assert_eq!(given::versions(&server, "/root").await.len(), 1);
}

#[tokio::test]
async fn the_name_matches_without_slash_and_in_any_casing() {
    let server = Server::reused().await;
    authority(&server, "/Path/Root", None).await;
    leaf(&server, "/Leaf", "/path/root").await;
    for name in ["/Path/Root", "Path/Root", "path/root", "/PATH/ROOT"] {
        let response = server.bulk_regenerate(name).await;
        assert_eq!(names(&response), ["/Leaf"], "{name}");
    }
    assert_eq!(given::versions(&server, "/leaf").await.len(), 5);
}

#[tokio::test]
async fn a_missing_name_is_400() {
    let server = Server::reused().await;
    for body in [
        json!({}),
        json!({"signed_by": null}),
        json!({"signed_by": ""}),
        json!({"signed_by": "/"}),
        json!({"signed_by": 7}),
        json!({"signed_by": ["/root"]}),
    ] {
        let response = server.post(BULK_REGENERATE, body).await;
        let error = response.expect(400).error();
        assert!(error.contains("signed_by"), "{error}");
    }
    for body in [json!([]), json!("/root")] {
        let response = server.post(BULK_REGENERATE, body).await;
        response.expect(400).error();
    }
}
