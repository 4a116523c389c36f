//! Requirements on request bodies, and lenient parsing of their scalars.

use keywright_harness::{Server, Text};
use reqwest::{Method, header};
use serde_json::{Value, json};

use crate::{compatibility::requests::TYPED_REQUESTS, given};

#[tokio::test]
async fn a_content_type_other_than_json_is_400_and_named() {
    let server = Server::reused().await;
    for (_, method, path, _) in requests_of_every_kind() {
        for content_type in [
            None,
            Some("text/plain"),
            Some("application/xml"),
            Some("application/x-www-form-urlencoded"),
            Some("application/jsonp"),
        ] {
            let mut request = server
                .request(method.clone(), &path)
                .bearer_auth(server.token())
                .body("{}");
            if let Some(content_type) = content_type {
                request = request.header(header::CONTENT_TYPE, content_type);
            }
            let response = server.send(request).await;
            assert_eq!(response.status, 400, "{content_type:?}: {response:?}");
            let error = response.error().to_lowercase();
            error.assert_contains("content type");
        }
    }
}

#[tokio::test]
async fn the_content_type_may_have_a_charset_and_any_casing() {
    let server = Server::reused().await;
    server.generated("/a", "password", json!({})).await;
    for (status, method, path, body) in given::requests(REQUESTS) {
        for content_type in [
            "application/json",
            "application/json;charset=UTF-8",
            "application/json; charset=utf-8",
            "Application/JSON",
            "application/json;charset=ISO-8859-1",
            "APPLICATION/JSON ; odata=verbose; x=\"y;z\"",
        ] {
            let request = server
                .request(method.clone(), &path)
                .bearer_auth(server.token())
                .header(header::CONTENT_TYPE, content_type)
                .body(body.to_string());
            let response = server.send(request).await;
            assert_eq!(response.status, status, "{content_type}: {response:?}");
        }
    }
}

#[tokio::test]
async fn an_early_refusal_keeps_the_connection_usable() {
    let server = Server::start().await;
    let token = format!("authorization: Bearer {}\r\n", server.token());
    let json = "content-type: application/json\r\n";
    let body = "{}";
    for (line, fields, status) in [
        ("PUT /api/v1/data", json.to_owned(), 401),
        (
            "PUT /api/v1/data",
            format!("{token}content-type: text/plain\r\n"),
            400,
        ),
        ("PUT /api/v1/nothing", format!("{token}{json}"), 404),
        ("PUT /api/v1/interpolate", format!("{token}{json}"), 404),
    ] {
        let mut connection = server.connect();
        let length = body.len();
        connection.send(
            format!(
                "{line} HTTP/1.1\r\nhost: localhost\r\n{fields}content-length: {length}\r\n\r\n"
            )
            .as_bytes(),
        );
        // A server that refused the request because of its head would have responded by now.
        server.get("/info").await.expect(200);
        connection.send(body.as_bytes());
        let response = connection.receive_until("\r\n\r\n");
        assert!(
            response.starts_with(&format!("HTTP/1.1 {status}")),
            "{line}: {response}"
        );
        connection.send(b"GET /info HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
        assert_eq!(connection.receive_last().0, 200, "{line}");
    }
}

#[tokio::test]
async fn a_refusal_does_not_wait_for_a_large_body() {
    let server = Server::start().await;
    let mut connection = server.connect();
    connection
        .send(b"PUT /api/v1/data HTTP/1.1\r\nhost: localhost\r\ncontent-length: 65537\r\n\r\n");
    let response = connection.receive_until("\r\n\r\n");
    assert!(response.starts_with("HTTP/1.1 401"), "{response}");
}

#[tokio::test]
async fn a_malformed_body_is_400_with_one_generic_message() {
    let server = Server::reused().await;
    let malformed: [&[u8]; 11] = [
        b" ",
        b"{",
        b"{\"name\":",
        b"{} {}",
        b"{'name':'/a'}",
        b"[]",
        b"[{\"name\":\"/a\"}]",
        b"null",
        b"1",
        b"\"a planted text\"",
        b"{\"name\":\"\xff\"}",
    ];
    let mut messages = Vec::new();
    for (_, method, path, _) in requests_of_every_kind() {
        for body in malformed {
            let request = server.authorized(method.clone(), &path).body(body.to_vec());
            let response = server.send(request).await;
            messages.push(response.expect(400).error());
        }
    }
    messages.dedup();
    assert_eq!(messages.len(), 1, "{messages:?}");
    assert!(!messages[0].contains("planted"), "{messages:?}");
}

const UNKNOWN_FIELDS: &str = r#"
    400 POST /api/v1/data {"name": "/a", "type": "password", "stray": 1}
    400 POST /api/v1/data {"name": "/a", "type": "password", "parameters": {"stray": 1}}
    400 POST /api/v1/data {"name": "/a", "type": "user", "value": {"stray": 1}}
    400 POST /api/v1/data {"name": "/p", "regenerate": true, "stray": 1}
    400 POST /api/v1/data {"name": "/a", "type": "certificate", "parameters": {"stray": 1}}
    400 POST /api/v1/data {"name": "/a", "type": "password", "additional_permissions": []}
    400 POST /api/v1/data {"name": "/a", "type": "password", "regenerate": false}
    400 POST /api/v1/data {"name": "/a", "type": "password", "regenerate": "false"}
    400 POST /api/v1/data {"name": "/p", "regenerate": true, "mode": "overwrite"}
    400 POST /api/v1/data {"name": "/p", "regenerate": true, "overwrite": "overwrite"}
    400 POST /api/v1/data {"name": "/p", "regenerate": true, "parameters": "overwrite"}
    400 POST /api/v1/data {"name": "/p", "regenerate": true, "value": "overwrite"}
    422 PUT /api/v1/data {"name": "/a", "type": "value", "value": "v", "stray": 1}
    422 PUT /api/v1/data {"name": "/a", "type": "user", "value": {"stray": 1}}
    422 PUT /api/v1/data {"name": "/a", "type": "rsa", "value": {"public_key": "p", "stray": 1}}
    422 PUT /api/v1/data {"name": "/a", "type": "ssh", "value": {"public_key": "p", "stray": 1}}
    422 PUT /api/v1/data {"name": "/a", "type": "certificate", "value": {"stray": 1}}
    422 PUT /api/v1/data {"name": "/a", "type": "value", "value": "v", "mode": "overwrite"}
    422 PUT /api/v1/data {"name": "/a", "type": "value", "value": "v", "overwrite": true}
    422 PUT /api/v1/data {"name": "/a", "type": "value", "value": "v", "parameters": {}}
    422 PUT /api/v1/data {"name": "/a", "type": "value", "value": "v", "additional_permissions": []}
    422 POST /api/v1/permissions {"permissions": [{"stray": 1}]}
    422 POST /api/v1/regenerate {"name": "/p", "stray": 1}
    422 POST /api/v1/regenerate {"name": "/p", "type": "password"}
    422 POST /api/v1/regenerate {"name": "/p", "mode": "overwrite"}
    422 POST /api/v1/regenerate {"name": "/p", "parameters": {}}
    422 POST /api/v1/regenerate {"name": "/p", "regenerate": true}
    422 POST /api/v1/regenerate {"name": "/p", "set_as_transitional": true}
    422 POST /api/v1/bulk-regenerate {"signed_by": "/p", "stray": 1}
    422 POST /api/v1/bulk-regenerate {"signed_by": "/p", "name": "/p"}
    422 POST /api/v1/bulk-regenerate {"signed_by": "/p", "metadata": {}}
    422 POST /api/v1/bulk-regenerate {"signed_by": "/p", "regenerate": true}
    422 POST /api/v1/bulk-regenerate {"signed_by": "/p", "set_as_transitional": true}
"#;

#[tokio::test]
async fn an_unknown_field_is_400_on_generate_and_422_elsewhere() {
    let server = Server::reused().await;
    server.generated("/p", "password", json!({})).await;
    for (status, method, path, body) in given::requests(UNKNOWN_FIELDS) {
        let fields = given::fields(&body);
        let sent = body.to_string();
        let is_stray = sent.contains("stray");
        let unknown = if is_stray {
            "stray"
        } else {
            fields[fields.len() - 1]
        };
        let request = server.authorized(method, &path).body(sent);
        server.send(request).await.expect_error(status, unknown);
    }
    assert_eq!(server.found_names("path=").await, ["/p"]);
}

#[tokio::test]
async fn field_names_are_case_sensitive() {
    let server = Server::reused().await;
    let body = json!({"Name": "/a", "name": "/a", "type": "value", "value": "v"});
    let response = server.put("/api/v1/data", body).await;
    response.expect_error(422, "Name");
}

const OTHER_TYPES: &str = r#"
    400 PUT /api/v1/data {"name": [], "type": "value", "value": "v"}
    400 PUT /api/v1/data {"name": {}, "type": "value", "value": "v"}
    400 POST /api/v1/data {"name": ["/a"], "type": "password"}
    400 POST /api/v1/data {"name": "/a", "type": "password", "parameters": []}
    400 POST /api/v1/data {"name": "/a", "type": "password", "parameters": "none"}
    400 POST /api/v1/data {"name": "/a", "type": "user", "value": "joe"}
    400 POST /api/v1/data {"name": "/a", "type": "certificate", "parameters": 30}
    400 POST /api/v1/data {"name": "/a", "type": "rsa", "parameters": true}
    400 POST /api/v1/data {"name": "/a", "type": {}}
    400 POST /api/v1/data {"name": "/a", "type": "password", "mode": []}
    400 POST /api/v1/regenerate {"name": {}}
"#;

#[tokio::test]
async fn a_field_of_another_json_type_is_400() {
    let server = Server::reused().await;
    for (status, method, path, body) in given::requests(OTHER_TYPES) {
        let response = given::send(&server, method, &path, &body).await;
        response.expect(status).error();
    }
}

/// Returns every request with a body. Some paths contain an unknown id.
fn requests_of_every_kind() -> Vec<(u16, Method, String, Value)> {
    given::requests(&[TYPED_REQUESTS, "200 POST /api/v1/interpolate"].concat())
}

/// Requests that succeed.
const REQUESTS: &str = r#"
    200 PUT /api/v1/data {"name": "/v", "type": "value", "value": "v"}
    200 POST /api/v1/data {"name": "/p", "type": "password"}
    200 POST /api/v1/regenerate {"name": "/a"}
    200 POST /api/v1/bulk-regenerate {"signed_by": "/a"}
    200 POST /api/v1/interpolate {}
"#;

#[tokio::test]
async fn the_type_may_have_any_casing_and_is_returned_in_lower_case() {
    let server = Server::reused().await;
    for credential_type in ["value", "VALUE", "Value"] {
        let version = server.stored("/v", credential_type, json!("v")).await;
        assert_eq!(version["type"], "value");
    }
    for credential_type in ["password", "PASSWORD", "passWord"] {
        let version = server.generated("/p", credential_type, json!({})).await;
        assert_eq!(version["type"], "password");
    }
    assert_eq!(server.versions("/v").await.len(), 3);
    assert_eq!(server.versions("/p").await.len(), 1);
}
