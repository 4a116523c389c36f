//! `/management` and read-only mode.

use std::net::IpAddr;

use keywright_harness::{Options, Response, Server, Text};
use reqwest::{Method, RequestBuilder, header::CONTENT_TYPE};
use serde_json::json;

use crate::given;

// GET and POST /management: requests and responses.

#[tokio::test]
async fn read_only_mode_is_off_at_start_and_then_as_last_set() {
    let server = Server::reused().await;
    assert_mode(&server, false).await;
    for is_on in [true, true, false, false, true] {
        server.set_read_only(is_on).await;
        assert_mode(&server, is_on).await;
    }
}

#[tokio::test]
async fn the_mode_does_not_survive_a_restart() {
    let server = Server::start().await;
    server.set_read_only(true).await;
    let directory = server.stop().await;
    let server = Server::start_in(directory, &Options::default()).await;
    assert_mode(&server, false).await;
}

#[tokio::test]
async fn an_invalid_body_is_refused_and_does_not_change_the_mode() {
    let server = Server::reused().await;
    for is_on in [false, true] {
        server.set_read_only(is_on).await;
        for (body, status, named) in [
            ("{}", 400, "read_only_mode"),
            (r#"{"read_only_mode":null}"#, 400, "read_only_mode"),
            (r#"{"read_only_mode":2}"#, 400, "read_only_mode"),
            (r#"{"read_only_mode":"yes"}"#, 400, "read_only_mode"),
            (r#"{"read_only_mode":[true]}"#, 400, "read_only_mode"),
            (r#"{"read_only_mode":true,"read_only_mode":false}"#, 400, ""),
            (r#"{"read_only_mode":true"#, 400, ""),
            (r#"[{"read_only_mode":true}]"#, 400, ""),
            ("true", 400, ""),
            ("", 400, ""),
            (r#"{"read_only_mode":true,"other":1}"#, 422, "other"),
            (r#"{"read_only_mode":false,"other":null}"#, 422, "other"),
        ] {
            let request = server.authorized(Method::POST, "/management").body(body);
            server.send(request).await.expect_error(status, named);
            assert_mode(&server, is_on).await;
        }
    }
}

#[tokio::test]
async fn the_actor_who_changes_the_mode_is_logged() {
    let server = Server::start().await;
    server.set_read_only(true).await;
    let log = server.log();
    let mut lines = log.lines();
    let line = lines.find(|line| line.contains("switched read-only mode"));
    let line = line.unwrap_or_default();
    line.assert_contains("uaa-client:developer");
    line.assert_contains(r#""read_only_mode":true"#);
}

async fn assert_mode(server: &Server, is_on: bool) {
    let response = server.get("/management").await.expect(200);
    assert_eq!(response.json(), json!({"read_only_mode": is_on}));
}

// Authorization for `/management`: configured actors, and local callers for reading the mode.

/// An address of this machine other than the server's.
const OTHER_ADDRESS: [u8; 4] = [127, 0, 0, 2];

const SWITCH_ON: &str = r#"{"read_only_mode":true}"#;

#[tokio::test]
async fn authenticated_local_callers_may_read_the_mode() {
    let server = Server::start_with(&actors("[]")).await;
    server.get("/management").await.expect(200);
    let on = json!({"read_only_mode": true});
    server.post("/management", on).await.expect(403);
}

#[tokio::test]
async fn an_unlisted_actor_from_another_address_is_refused() {
    let server = Server::start_with(&actors("[]")).await;
    for (method, path, body) in [
        (Method::GET, "/management", ""),
        (Method::HEAD, "/management", ""),
        (Method::POST, "/management", SWITCH_ON),
        (Method::POST, "/management", "not JSON"),
        (Method::POST, "/%6danagement", SWITCH_ON),
    ] {
        let response = send_elsewhere(&server, &method, path, server.token(), body);
        let response = response.await.expect(403);
        assert!(method == Method::HEAD || !response.error().is_empty());
    }
    assert_mode(&server, false).await;
}

#[tokio::test]
async fn listed_actors_are_allowed_from_another_address() {
    let client = "uaa-client:developer";
    let user = "uaa-user:3f0b6a3c-5f0e-4a9b-9d0e-6d1c4a1f2b10";
    for (named, client_status, user_status) in [
        (json!([client]), 200, 403),
        (json!([user]), 403, 200),
        (json!([user, client]), 200, 200),
        (json!([]), 403, 403),
        (
            json!(["uaa-client:develope", "uaa-client:developer2"]),
            403,
            403,
        ),
        (
            json!(["uaa-client:Developer", "uaa-user:developer"]),
            403,
            403,
        ),
    ] {
        let options = actors(&named.to_string());
        let server = Server::start_with(&options).await;
        let user_token = given::user_token(&server).await;
        for (token, status) in [(server.token(), client_status), (&user_token, user_status)] {
            for (method, body) in [(Method::GET, ""), (Method::POST, SWITCH_ON)] {
                let response = send_elsewhere(&server, &method, "/management", token, body);
                response.await.expect(status);
            }
        }
    }
}

#[tokio::test]
async fn forwarded_headers_do_not_change_the_origin() {
    let server = Server::start_with(&actors("[]")).await;
    for (name, value) in [
        ("x-forwarded-for", "127.0.0.1"),
        ("x-real-ip", "127.0.0.1"),
        ("forwarded", "for=127.0.0.1"),
    ] {
        let request = request_elsewhere(&server, &Method::GET, "/management")
            .bearer_auth(server.token())
            .header(name, value);
        server.send(request).await.expect(403);
    }
}

#[tokio::test]
async fn unauthenticated_callers_get_401_from_every_address() {
    let server = Server::start_with(&actors(r#"["uaa-client:developer"]"#)).await;
    for method in [Method::GET, Method::POST] {
        for request in [
            server.request(method.clone(), "/management"),
            request_elsewhere(&server, &method, "/management"),
        ] {
            let refused = server.send(request.body(SWITCH_ON)).await.expect(401);
            assert_eq!(refused.error(), "access_denied");
        }
    }
    let forged =
        request_elsewhere(&server, &Method::GET, "/management").bearer_auth("no.valid.token");
    let refused = server.send(forged).await.expect(401);
    assert_eq!(refused.error(), "invalid_token");
}

#[tokio::test]
async fn a_wrong_method_is_404_for_refused_callers_too() {
    let server = Server::reused().await;
    let token = server.token();
    for method in [Method::PUT, Method::DELETE, Method::PATCH] {
        let response = send_elsewhere(&server, &method, "/management", token, SWITCH_ON);
        assert_eq!(response.await.expect(404).body, "", "{method}");
    }
}

/// Returns options with these actors for `/management`, a JSON array.
fn actors(named: &str) -> Options {
    Options::default().environment("KEYWRIGHT_MANAGEMENT__ACTORS", named)
}

async fn send_elsewhere(
    server: &Server,
    method: &Method,
    path: &str,
    token: &str,
    body: &'static str,
) -> Response {
    let request = request_elsewhere(server, method, path)
        .bearer_auth(token)
        .header(CONTENT_TYPE, "application/json")
        .body(body);
    server.send(request).await
}

/// Returns a request without a token, over a connection from another address.
fn request_elsewhere(server: &Server, method: &Method, path: &str) -> RequestBuilder {
    let client = given::client(|builder| builder.local_address(IpAddr::from(OTHER_ADDRESS)));
    client.request(method.clone(), format!("{}{path}", server.base_url()))
}

// Read-only mode: refused and permitted requests. Tests of the service check every route (`host/api/tests/service/routes.rs`).

#[tokio::test]
async fn writes_are_503_with_the_reason_until_read_only_mode_ends() {
    let server = Server::reused().await;
    server.set_read_only(true).await;
    for path in ["/api/v1/data", "/info/..//api/v1/%64ata/"] {
        let request = server.request(Method::PUT, path);
        let request = request.bearer_auth(server.token()).body("{}");
        let refused = server.send(request).await;
        refused.expect_error(503, "read-only");
        // The end of read-only mode is unknown.
        assert_eq!(refused.header("retry-after"), None);
        let without_a_token = server.send(server.request(Method::PUT, path)).await;
        assert_eq!(without_a_token.expect(401).error(), "access_denied");
    }
    server.set_read_only(false).await;
    server.set_value("/a", "v").await;
}

#[tokio::test]
async fn interpolations_and_logins_succeed_in_read_only_mode() {
    let server = Server::reused().await;
    server.stored("/a", "json", json!({"k": 1})).await;
    server.set_read_only(true).await;
    let document = json!({"s": [{"credentials": {"credhub-ref": "/a"}}]});
    let response = server.post("/api/v1/interpolate", document).await;
    let filled = json!({"s": [{"credentials": {"k": 1}}]});
    assert_eq!(response.expect(200).json(), filled);
    given::user_token(&server).await;
}

#[tokio::test]
async fn a_write_in_progress_completes_in_read_only_mode() {
    let server = Server::start().await;
    let body = json!({"name": "/a", "type": "value", "value": "v"}).to_string();
    let head = format!(
        "PUT /api/v1/data HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\nauthorization: Bearer {}\r\n\
         content-type: application/json\r\ncontent-length: {}\r\nexpect: 100-continue\r\n\r\n",
        server.token(),
        body.len()
    );
    let mut begun = server.connect();
    begun.send(head.as_bytes());
    // The server requests the body once it has admitted the request.
    let requested = begun.receive_until("\r\n\r\n");
    assert!(requested.starts_with("HTTP/1.1 100"), "{requested}");
    server.set_read_only(true).await;
    begun.send(body.as_bytes());
    assert_eq!(begun.receive_last().0, 200);
    server.get("/api/v1/data?name=/a").await.expect(200);
}

#[tokio::test]
async fn a_refused_write_is_not_logged_as_a_server_error() {
    let server = Server::start().await;
    server.set_read_only(true).await;
    server.delete("/api/v1/data?name=/a").await.expect(503);
    server.set_read_only(false).await;
    let log = server.whole_log().await;
    log.assert_contains(r#""http.status":503"#);
    log.assert_contains(r#""level":"INFO""#);
    log.assert_lacks(r#""level":"ERROR""#);
}
