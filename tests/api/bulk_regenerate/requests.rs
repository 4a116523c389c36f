//! Valid and invalid requests.

use keywright_harness::Server;
use reqwest::Method;
use serde_json::json;

use super::{BULK_REGENERATE, authority, leaf, names};
use crate::given;

#[tokio::test]
async fn an_unknown_ca_or_one_without_leaves_yields_an_empty_list() {
    let server = Server::start().await;
    authority(&server, "/root", None).await;
    for name in ["/root", "/nowhere", "nowhere", "/not a name", "//"] {
        let response = server.bulk_regenerate(name).await.expect(200);
        assert_eq!(response.json(), json!({"regenerated_credentials": []}));
    }
    assert_eq!(given::versions(&server, "/root").await.len(), 1);
}

#[tokio::test]
async fn the_name_matches_without_slash_and_in_any_casing() {
    let server = Server::start().await;
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
    let server = Server::start().await;
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

#[tokio::test]
async fn unknown_fields_are_422_and_named() {
    let server = Server::start().await;
    authority(&server, "/root", None).await;
    leaf(&server, "/leaf", "/root").await;
    for field in ["name", "metadata", "regenerate", "set_as_transitional"] {
        let mut body = json!({"signed_by": "/root"});
        body[field] = json!("x");
        let response = server.post(BULK_REGENERATE, body).await;
        let error = response.expect(422).error();
        assert!(error.contains(field), "{error}");
    }
    assert_eq!(given::versions(&server, "/leaf").await.len(), 1);
}

#[tokio::test]
async fn a_trailing_slash_changes_nothing_and_another_method_is_404() {
    let server = Server::start().await;
    authority(&server, "/root", None).await;
    leaf(&server, "/leaf", "/root").await;
    let slashed = format!("{BULK_REGENERATE}/");
    let body = json!({"signed_by": "/root"});
    let response = server.post(&slashed, body).await.expect(200);
    assert_eq!(
        response.json(),
        json!({"regenerated_credentials": ["/leaf"]})
    );
    for path in [BULK_REGENERATE, &slashed] {
        for method in [Method::GET, Method::PUT, Method::PATCH, Method::DELETE] {
            let response = server.send(server.authorized(method, path)).await;
            assert_eq!(
                (response.status, response.body.as_str()),
                (404, ""),
                "{path}"
            );
        }
    }
    assert_eq!(given::versions(&server, "/leaf").await.len(), 2);
}
