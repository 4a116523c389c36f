//! Parts of a document that are references, and unchanged parts.

use keywright_harness::Server;
use reqwest::Method;
use serde_json::json;

use super::{interpolate, one_binding, with_secret};

#[tokio::test]
async fn only_the_credentials_object_is_replaced_by_the_value() {
    let (server, value) = with_secret().await;
    let document = |credentials| {
        json!({
            "first": [
                {"name": "a", "label": "x", "credentials": credentials, "tags": [1, {"b": null}]},
                {"name": "plain", "credentials": {"password": "in clear"}},
            ],
            "second": [{"credentials": credentials}],
            "text": "untouched",
        })
    };
    let with_siblings = json!({"store-ref": "/secret", "sibling": "vanishes"});
    let answer = interpolate(&server, document(with_siblings))
        .await
        .expect(200)
        .json();
    assert_eq!(answer, document(value));
}

#[tokio::test]
async fn of_three_reference_keys_the_underscore_form_wins() {
    let (server, value) = with_secret().await;
    for key in ["store-ref", "credhub-ref", "credhub_ref"] {
        let answer = interpolate(&server, one_binding(&json!({key: "/secret"}))).await;
        assert_eq!(answer.expect(200).json(), one_binding(&value), "{key}");
    }
    let several = json!({
        "store-ref": "/nowhere", "credhub-ref": "/nowhere", "credhub_ref": "/secret",
    });
    let answer = interpolate(&server, one_binding(&several))
        .await
        .expect(200)
        .json();
    assert_eq!(answer, one_binding(&value));
}

#[tokio::test]
async fn parentheses_around_a_reference_are_stripped() {
    let (server, value) = with_secret().await;
    for reference in [
        "((/secret))",
        "((/secret",
        "/secret))",
        "((secret))",
        "secret",
        "/SECRET",
    ] {
        let document = one_binding(&json!({"credhub-ref": reference}));
        let answer = interpolate(&server, document).await;
        assert_eq!(
            answer.expect(200).json(),
            one_binding(&value),
            "{reference}"
        );
    }
}

#[tokio::test]
async fn every_other_shape_passes_through() {
    let (server, _) = with_secret().await;
    let reference = json!({"store-ref": "/nowhere"});
    for document in [
        json!({}),
        json!({"service": []}),
        json!({"service": {}}),
        json!({"service": null}),
        json!({"service": "store-ref"}),
        json!({"service": {"credentials": reference}}),
        json!({"service": [null, 1, "text", true, [reference], [{"credentials": reference}]]}),
        json!({"service": [{}]}),
        json!({"service": [reference]}),
        json!({"service": [{"credentials": null}]}),
        json!({"service": [{"credentials": "/nowhere"}]}),
        json!({"service": [{"credentials": [reference]}]}),
        json!({"service": [{"credentials": {"nested": reference}}]}),
        json!({"service": [{"credentials": {"store-ref": {"name": "/nowhere"}}}]}),
        json!({"service": [{"credentials": {"store-ref": null}}]}),
        json!({"service": [{"credentials": {"store-ref": ["/nowhere"]}}]}),
        json!({"service": [{"credentials": {"store_ref": "/nowhere", "STORE-REF": "/nowhere"}}]}),
        json!({"service": [{"Credentials": reference}]}),
        json!({"credentials": reference}),
        json!({"store-ref": "/nowhere"}),
        json!({"outer": {"service": [{"credentials": reference}]}}),
    ] {
        let answer = interpolate(&server, document.clone()).await;
        assert_eq!(answer.status, 200, "{document}: {}", answer.body);
        assert_eq!(answer.json(), document);
    }
}

#[tokio::test]
async fn a_reference_key_that_is_not_text_is_skipped() {
    let (server, value) = with_secret().await;
    let credentials = json!({"credhub_ref": 7, "credhub-ref": null, "store-ref": "/secret"});
    let answer = interpolate(&server, one_binding(&credentials))
        .await
        .expect(200)
        .json();
    assert_eq!(answer, one_binding(&value));
}

#[tokio::test]
async fn the_order_of_fields_is_kept() {
    let server = Server::start().await;
    let value = r#"{"z":1,"a":{"y":[],"b":2},"m":null}"#;
    let set = format!(r#"{{"name":"/secret","type":"json","value":{value}}}"#);
    let request = server.authorized(Method::PUT, "/api/v1/data").body(set);
    server.send(request).await.expect(200);
    let document = |credentials: &str| {
        format!(
            r#"{{"z":[{{"y":1,"credentials":{credentials},"a":"ä"}}],"b":{{"d":1,"c":2}},"a":[]}}"#
        )
    };
    let body = document(r#"{"b":1,"store-ref":"/secret","a":2}"#);
    let request = server
        .authorized(Method::POST, "/api/v1/interpolate")
        .body(body);
    assert_eq!(server.send(request).await.expect(200).body, document(value));
}

#[tokio::test]
async fn numbers_keep_all_digits_in_the_document_and_in_values() {
    let server = Server::start().await;
    let value = r#"{"large":123456789012345678901234567890,"exact":0.10000000000000000000001}"#;
    let body = format!(r#"{{"name": "/exact", "type": "json", "value": {value}}}"#);
    let set = server.authorized(Method::PUT, "/api/v1/data").body(body);
    assert_eq!(set.send().await.expect("an answer").status(), 200);
    let document = |credentials: &str| {
        format!(
            r#"{{"count":98765432109876543210,"list":[{{"credentials":{credentials}}}],"rate":1.50}}"#
        )
    };
    let request = server
        .authorized(Method::POST, "/api/v1/interpolate")
        .body(document(r#"{"credhub-ref":"/exact"}"#));
    let answer = request.send().await.expect("an answer");
    assert_eq!(answer.text().await.expect("a body"), document(value));
}
