//! Rows 11, 12 and 20: unknown fields, deep bodies, and other input of clients.

use keywright_harness::{Answer, Caller, Server};
use reqwest::{Method, header};
use serde_json::{Value, json};

use crate::given;

const ID: &str = "8ffd2a43-0ba6-44cf-8b55-e2e9ba2cb9e9";

/// Every request with a body of known fields, and the status of an unknown one.
fn typed_requests() -> Vec<(Method, String, u16)> {
    let certificate = format!("/api/v1/certificates/{ID}");
    let permission = format!("/api/v2/permissions/{ID}");
    [
        (Method::PUT, "/api/v1/data".to_owned(), 422),
        (Method::POST, "/api/v1/data".to_owned(), 400),
        (Method::POST, "/api/v1/regenerate".to_owned(), 422),
        (Method::POST, "/api/v1/bulk-regenerate".to_owned(), 422),
        (Method::POST, format!("{certificate}/regenerate"), 422),
        (
            Method::PUT,
            format!("{certificate}/update_transitional_version"),
            422,
        ),
        (Method::POST, format!("{certificate}/versions"), 422),
        (Method::POST, "/api/v2/permissions".to_owned(), 422),
        (Method::PUT, permission.clone(), 422),
        (Method::PATCH, permission, 422),
        (Method::POST, "/api/v1/permissions".to_owned(), 422),
        (Method::POST, "/management".to_owned(), 422),
    ]
    .into()
}

async fn caller(server: &Server) -> Caller {
    server.as_client("developer").await
}

/// An object with this many levels, counting the object itself.
fn nested(field: &str, levels: usize) -> String {
    let (open, close) = ("[".repeat(levels - 1), "]".repeat(levels - 1));
    format!(r#"{{"{field}":{open}{close}}}"#)
}

#[tokio::test]
async fn row_11_unknown_fields_are_reported_before_missing_ones() {
    let server = Server::start().await;
    let caller = caller(&server).await;
    for (method, path, status) in typed_requests() {
        let answer = caller
            .send(method.clone(), &path, json!({"unheard_of": 1}))
            .await;
        assert_eq!(answer.status, status, "{method} {path}: {answer:?}");
        assert!(answer.error().contains("unheard_of"), "{answer:?}");
    }
    let entry = json!({"permissions": [{"unheard_of": 1}]});
    for (method, path, body, status) in [
        (Method::POST, "/api/v1/permissions", entry, 422),
        (
            Method::PUT,
            "/api/v1/data",
            json!({"name": "/a", "type": "user", "value": {"unheard_of": 1}}),
            422,
        ),
        (
            Method::PUT,
            "/api/v1/data",
            json!({"name": "/a", "type": "certificate", "value": {"unheard_of": 1}}),
            422,
        ),
        (
            Method::POST,
            "/api/v1/data",
            json!({"name": "/a", "type": "certificate", "parameters": {"unheard_of": 1}}),
            400,
        ),
    ] {
        let answer = caller.send(method.clone(), path, body.clone()).await;
        assert_eq!(answer.status, status, "{method} {body}: {answer:?}");
        let error = answer.error();
        assert!(error.contains("unheard_of"), "{body}: {error}");
    }
}

#[tokio::test]
async fn row_11_v2_operations_that_are_not_an_array_are_422() {
    let server = Server::start().await;
    let caller = caller(&server).await;
    let permission = format!("/api/v2/permissions/{ID}");
    for operations in [
        None,
        Some(Value::Null),
        Some(json!("read")),
        Some(json!({"read": true})),
        Some(json!(5)),
        Some(json!([5])),
        Some(json!([null])),
        Some(json!([["read"]])),
    ] {
        let mut amended = json!({});
        let mut whole = json!({"path": "/a", "actor": "someone"});
        if let Some(operations) = &operations {
            amended["operations"] = operations.clone();
            whole["operations"] = operations.clone();
        }
        for (method, path, body) in [
            (Method::POST, "/api/v2/permissions", &whole),
            (Method::PUT, &permission, &whole),
            (Method::PATCH, &permission, &amended),
        ] {
            let answer = caller.send(method.clone(), path, body.clone()).await;
            assert_eq!(answer.status, 422, "{method} {body}: {answer:?}");
            assert!(!answer.error().is_empty());
        }
    }
    // Missing operations are reported before a missing path.
    let missing = server.post("/api/v2/permissions", json!({})).await;
    assert!(missing.expect(422).error().contains("operations"));
    let empty = json!({"path": "/a", "actor": "someone", "operations": []});
    server.post("/api/v2/permissions", empty).await.expect(400);
    let entry = json!({"path": "/a", "actor": "someone"});
    let older = json!({"credential_name": "/a", "permissions": [entry]});
    server.post("/api/v1/permissions", older).await.expect(400);
}

#[tokio::test]
async fn row_12_every_body_may_have_128_levels() {
    let server = Server::start().await;
    let caller = caller(&server).await;
    let mut requests = typed_requests();
    requests.push((Method::POST, "/api/v1/interpolate".to_owned(), 200));
    for (method, path, status) in requests {
        let sent = |levels| {
            let request = caller.request(method.clone(), &path);
            Answer::to(request.body(nested("unheard_of", levels)))
        };
        let answer = sent(128).await;
        assert_eq!(answer.status, status, "{method} {path}: {answer:?}");
        for levels in [129, 10_000] {
            let refused = sent(levels).await.expect(400).error();
            assert!(refused.contains("at most 128 levels"), "{path}: {refused}");
        }
    }
}

#[tokio::test]
async fn row_12_values_of_128_levels_are_returned_and_resolved() {
    let server = Server::start().await;
    let put = async |body: String| {
        let request = server.authorized(Method::PUT, "/api/v1/data");
        server.send(request.body(body)).await
    };
    let set = |levels: usize| {
        format!(
            r#"{{"name":"/a","type":"json","value":{}}}"#,
            nested("k", levels - 1)
        )
    };
    put(set(129)).await.expect(400);
    put(set(128)).await.expect(200);
    let value = nested("k", 127);
    let read = server.get("/api/v1/data?name=/a").await.expect(200);
    assert!(read.body.contains(&value));
    let document = json!({"s": [{"credentials": {"credhub-ref": "/a"}}]});
    let resolved = server.post("/api/v1/interpolate", document).await;
    let expected = format!(r#"{{"s":[{{"credentials":{value}}}]}}"#);
    assert_eq!(resolved.expect(200).body, expected);

    let metadata = nested("k", 127);
    let with_metadata =
        format!(r#"{{"name":"/b","type":"value","value":"v","metadata":{metadata}}}"#);
    put(with_metadata).await.expect(200);
    let read = server.get("/api/v1/data?name=/b").await.expect(200);
    assert!(read.body.contains(&metadata));
}

#[tokio::test]
async fn row_20_slashes_in_a_row_are_one() {
    let server = Server::start().await;
    given::set_value(&server, "/a", "v").await;
    for path in [
        "//api/v1/data?name=/a",
        "/api//v1///data?name=/a",
        "/api/v1/data/?name=/a",
        "/api/v1/data//?name=/a",
    ] {
        let answer = server.get(path).await.expect(200);
        assert_eq!(given::data(&answer).len(), 1, "{path}");
    }
    let twice = json!({"name": "//a", "type": "value", "value": "v"});
    server.put("/api/v1/data", twice).await.expect(400);
}

#[tokio::test]
async fn row_20_parameters_of_the_content_type_are_ignored() {
    let server = Server::start().await;
    let body = json!({"name": "/a", "type": "value", "value": "ä"}).to_string();
    for (content_type, status) in [
        ("application/json", 200),
        ("application/json; charset=utf-8", 200),
        ("application/json;charset=ISO-8859-1", 200),
        ("APPLICATION/JSON ; odata=verbose; x=\"y;z\"", 200),
        ("application/x-www-form-urlencoded", 400),
        ("text/json", 400),
    ] {
        let request = server
            .request(Method::PUT, "/api/v1/data")
            .bearer_auth(server.token())
            .header(header::CONTENT_TYPE, content_type)
            .body(body.clone());
        let answer = server.send(request).await;
        assert_eq!(answer.status, status, "{content_type}: {answer:?}");
    }
    let newest = given::newest(&server, "/a").await;
    assert_eq!(newest["value"].as_str().unwrap(), "ä");
}

#[tokio::test]
async fn row_20_info_and_health_succeed_with_any_token() {
    let server = Server::start().await;
    for path in ["/info", "/health"] {
        let expected = server.send(server.request(Method::GET, path)).await;
        for authorization in ["Bearer x", "Bearer ", "Basic eDp5", "x"] {
            let request = server.request(Method::GET, path);
            let request = request.header(header::AUTHORIZATION, authorization);
            let answer = server.send(request).await.expect(200);
            assert_eq!(answer.body, expected.body, "{path} {authorization}");
        }
    }
}
