//! Interpolating service bindings: `POST /api/v1/interpolate`.

use keywright_harness::{Response, ReusedServer, Server, Text};
use reqwest::Method;
use serde_json::{Value, json};

pub(crate) async fn interpolate(server: &Server, document: Value) -> Response {
    server.post("/api/v1/interpolate", document).await
}

/// Returns a document with one service that has one binding.
fn one_binding(credentials: &Value) -> Value {
    json!({"service": [{"name": "binding", "credentials": credentials}]})
}

/// Starts a server with the credential `/secret` of type json. Returns it with the credential's value.
async fn with_secret() -> (ReusedServer, Value) {
    let server = Server::reused().await;
    let value = json!({"password": "p", "nested": {"list": [1, null, "ä"]}});
    server.stored("/secret", "json", value.clone()).await;
    (server, value)
}

// Parts of a document that are references, and unchanged parts.

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
    let response = interpolate(&server, document(with_siblings)).await;
    assert_eq!(response.expect(200).json(), document(value));
}

#[tokio::test]
async fn credhub_ref_takes_precedence_over_other_reference_keys() {
    let (server, value) = with_secret().await;
    for key in ["store-ref", "credhub-ref", "credhub_ref"] {
        let response = interpolate(&server, one_binding(&json!({key: "/secret"}))).await;
        assert_eq!(response.expect(200).json(), one_binding(&value), "{key}");
    }
    let several = json!({
        "store-ref": "/nowhere", "credhub-ref": "/nowhere", "credhub_ref": "/secret",
    });
    let two = json!({"store-ref": "/nowhere", "credhub-ref": "/secret"});
    // A key whose value is not text is skipped.
    let not_text = json!({"credhub_ref": 7, "credhub-ref": null, "store-ref": "/secret"});
    for credentials in [several, two, not_text] {
        let response = interpolate(&server, one_binding(&credentials)).await;
        assert_eq!(response.expect(200).json(), one_binding(&value));
    }
}

#[tokio::test]
async fn parentheses_around_a_reference_are_stripped() {
    let (server, value) = with_secret().await;
    for reference in "((/secret)) ((/secret /secret)) ((secret)) secret /SECRET".split(' ') {
        let document = one_binding(&json!({"credhub-ref": reference}));
        let response = interpolate(&server, document).await.expect(200);
        assert_eq!(response.json(), one_binding(&value), "{reference}");
    }
}

#[tokio::test]
async fn documents_of_any_other_shape_are_returned_unchanged() {
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
        json!({"service": [{"nested": {"credentials": reference}}]}),
        json!({"credentials": reference}),
        json!({"store-ref": "/nowhere"}),
        json!({"outer": {"service": [{"credentials": reference}]}}),
    ] {
        let response = interpolate(&server, document.clone()).await;
        assert_eq!(response.status, 200, "{document}: {}", response.body);
        assert_eq!(response.json(), document);
    }
}

#[tokio::test]
async fn the_order_of_fields_and_all_digits_are_kept() {
    let server = Server::reused().await;
    let value = r#"{"z":123456789012345678901234567890,"a":{"y":[],"b":1.10},"m":null}"#;
    let set = format!(r#"{{"name":"/secret","type":"json","value":{value}}}"#);
    let request = server.authorized(Method::PUT, "/api/v1/data").body(set);
    server.send(request).await.expect(200);
    let document = |credentials: &str| {
        format!(
            r#"{{"z":[{{"y":1.50,"credentials":{credentials},"a":"ä"}}],"b":{{"d":98765432109876543210,"c":2}},"a":[]}}"#
        )
    };
    let body = document(r#"{"b":1,"store-ref":"/secret","a":2}"#);
    let request = server
        .authorized(Method::POST, "/api/v1/interpolate")
        .body(body);
    assert_eq!(server.send(request).await.expect(200).body, document(value));
}

// Values substituted for references.

#[tokio::test]
async fn the_newest_version_is_substituted_and_nothing_is_written() {
    let (server, _) = with_secret().await;
    let newest = json!({"password": "newer"});
    server.stored("/secret", "json", newest.clone()).await;
    let before = server.versions("/secret").await;
    let document = one_binding(&json!({"store-ref": "/secret"}));
    let response = interpolate(&server, document).await.expect(200).json();
    assert_eq!(response, one_binding(&newest));
    assert_eq!(server.versions("/secret").await, before);
}

#[tokio::test]
async fn all_references_to_one_credential_are_resolved() {
    let (server, value) = with_secret().await;
    let other = json!({"other": true});
    server.stored("/other", "json", other.clone()).await;
    let binding = |credentials| json!({"credentials": credentials});
    let document = json!({
        "a": [
            binding(json!({"store-ref": "/secret"})),
            binding(json!({"credhub-ref": "((Secret))"})),
        ],
        "b": [binding(json!({"store-ref": "/other"})), binding(json!({"store-ref": "secret"}))],
    });
    let response = interpolate(&server, document).await.expect(200).json();
    let expected = json!({
        "a": [binding(value.clone()), binding(value.clone())],
        "b": [binding(other), binding(value)],
    });
    assert_eq!(response, expected);
}

#[tokio::test]
async fn a_value_that_looks_like_a_reference_is_not_resolved() {
    let server = Server::reused().await;
    let value = json!({"store-ref": "/secret", "credentials": {"credhub-ref": "/nowhere"}});
    server.stored("/secret", "json", value.clone()).await;
    let document = one_binding(&json!({"store-ref": "/secret"}));
    let response = interpolate(&server, document).await.expect(200).json();
    assert_eq!(response, one_binding(&value));
}

#[tokio::test]
async fn a_service_name_cannot_redirect_the_substitution() {
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
        let response = interpolate(&server, document).await.expect(200).json();
        assert_eq!(response, expected, "{service:?}");
    }
}

#[tokio::test]
async fn a_thousand_references_are_resolved() {
    let (server, value) = with_secret().await;
    let bindings = |credentials: serde_json::Value| json!({"service": vec![json!({"credentials": credentials}); 1_000]});
    let document = bindings(json!({"store-ref": "/secret"}));
    let response = interpolate(&server, document).await.expect(200).json();
    assert_eq!(response, bindings(value));
}

// Failures of an interpolation.

#[tokio::test]
async fn a_reference_to_an_absent_credential_is_404() {
    let (server, _) = with_secret().await;
    let absent = [
        "/nowhere",
        "((/nowhere))",
        "",
        "(())",
        "((",
        "/",
        "not a name",
        "//",
        "*",
    ];
    // Only one pair of parentheses at the very start and end is stripped.
    let not_stripped = ["(/secret)", "(((/secret)))", " ((/secret)) "];
    for reference in absent.into_iter().chain(not_stripped) {
        let document = one_binding(&json!({"store-ref": reference}));
        interpolate(&server, document).await.expect(404).error();
    }
}

#[tokio::test]
async fn a_reference_to_another_type_is_400_and_names_it() {
    let (server, _) = with_secret().await;
    for (credential_type, value) in [
        ("value", json!("v")),
        ("password", json!("p")),
        ("user", json!({"username": "ada", "password": "p"})),
        ("ssh", json!({"private_key": "private"})),
    ] {
        let name = format!("/Of/{credential_type}");
        server.stored(&name, credential_type, value).await;
        let document = one_binding(&json!({"store-ref": name.to_lowercase()}));
        let error = interpolate(&server, document).await.expect(400).error();
        let (error, name) = (error.to_lowercase(), name.to_lowercase());
        error.assert_contains(&name);
    }
}

#[tokio::test]
async fn the_first_failure_fails_the_whole_request() {
    let (server, _) = with_secret().await;
    server.stored("/text", "value", json!("v")).await;
    for (references, status) in [
        (["/secret", "/nowhere", "/text"], 404),
        (["/secret", "/text", "/nowhere"], 400),
        (["/nowhere", "/secret", "/text"], 404),
        (["/text", "/text", "/secret"], 400),
    ] {
        let bindings = references.map(|name| json!({"credentials": {"store-ref": name}}));
        let document = json!({"service": bindings});
        let response = interpolate(&server, document).await;
        assert_eq!(response.status, status, "{references:?}: {}", response.body);
        response.assert_lacks("nested");
    }
}

/// Other malformed documents are among the bodies in `http/bodies.rs`.
#[tokio::test]
async fn an_empty_document_or_one_with_duplicate_keys_is_400() {
    let server = Server::reused().await;
    for body in ["", "{\"a\":1,\"a\":2}"] {
        let request = server.authorized(Method::POST, "/api/v1/interpolate");
        let response = server.send(request.body(body)).await;
        response.expect(400).error();
    }
}

#[tokio::test]
async fn repeated_references_count_toward_the_size_limit() {
    let server = Server::reused().await;
    // Each value is encrypted together with other data, in total a little more than 64,000 bytes.
    let value = json!({"text": "x".repeat(64_000 - r#"{"text":""}"#.len())});
    for name in ["/one", "/other"] {
        server.stored(name, "json", value.clone()).await;
    }
    for (references, status) in [(261, 200), (263, 413)] {
        let names = ["/one", "/other"].into_iter().cycle().take(references);
        let bindings = names.map(|name| json!({"credentials": {"store-ref": name}}));
        let document = json!({"service": bindings.collect::<Vec<_>>()});
        let response = interpolate(&server, document).await;
        assert_eq!(response.status, status, "{references}");
    }
}
