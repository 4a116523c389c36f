//! Values substituted for references.

use keywright_harness::Server;
use serde_json::json;

use super::{interpolate, one_binding, with_secret};

#[tokio::test]
async fn the_newest_version_is_substituted() {
    let (server, _) = with_secret().await;
    let newest = json!({"password": "newer"});
    server
        .set("/secret", "json", newest.clone())
        .await
        .expect(200);
    let document = one_binding(&json!({"store-ref": "/secret"}));
    let answer = interpolate(&server, document).await.expect(200).json();
    assert_eq!(answer, one_binding(&newest));
}

#[tokio::test]
async fn all_references_to_one_credential_are_resolved() {
    let (server, value) = with_secret().await;
    let other = json!({"other": true});
    server
        .set("/other", "json", other.clone())
        .await
        .expect(200);
    let binding = |credentials| json!({"credentials": credentials});
    let document = json!({
        "a": [
            binding(json!({"store-ref": "/secret"})),
            binding(json!({"credhub-ref": "((Secret))"})),
        ],
        "b": [binding(json!({"store-ref": "/other"})), binding(json!({"store-ref": "secret"}))],
    });
    let answer = interpolate(&server, document).await.expect(200).json();
    let expected = json!({
        "a": [binding(value.clone()), binding(value.clone())],
        "b": [binding(other), binding(value)],
    });
    assert_eq!(answer, expected);
}

#[tokio::test]
async fn a_value_that_looks_like_a_reference_is_not_resolved() {
    let server = Server::start().await;
    let value = json!({"store-ref": "/secret", "credentials": {"credhub-ref": "/nowhere"}});
    server
        .set("/secret", "json", value.clone())
        .await
        .expect(200);
    let document = one_binding(&json!({"store-ref": "/secret"}));
    let answer = interpolate(&server, document).await.expect(200).json();
    assert_eq!(answer, one_binding(&value));
}

#[tokio::test]
async fn service_names_never_redirect_the_substitution() {
    let (server, value) = with_secret().await;
    for service in [
        "a/b",
        "a~b",
        "a~1b",
        "~0~1",
        "/",
        "",
        "a/0/credentials",
        "a~10~1credentials",
        "0",
        "-",
        "ä \"\\ \u{0}",
        "__proto__",
    ] {
        let innocent = json!({"b": [{"credentials": {"kept": true}}], "0": {"credentials": 1}});
        let mut document = json!({"a": innocent, "a~1": [{"credentials": {"kept": true}}]});
        let mut expected = document.clone();
        document[service] = json!([{"credentials": {"store-ref": "/secret"}}]);
        expected[service] = json!([{"credentials": value}]);
        let answer = interpolate(&server, document).await.expect(200).json();
        assert_eq!(answer, expected, "{service:?}");
    }
}

#[tokio::test]
async fn a_thousand_references_are_resolved() {
    let (server, value) = with_secret().await;
    let bindings = |credentials: serde_json::Value| json!({"service": vec![json!({"credentials": credentials}); 1_000]});
    let document = bindings(json!({"store-ref": "/secret"}));
    let answer = interpolate(&server, document).await.expect(200).json();
    assert_eq!(answer, bindings(value));
}

#[tokio::test]
async fn interpolating_writes_nothing() {
    let (server, _) = with_secret().await;
    let before = server.versions("/secret").await;
    let document = one_binding(&json!({"store-ref": "/secret"}));
    interpolate(&server, document).await.expect(200);
    assert_eq!(server.versions("/secret").await, before);
}
