//! Events of failed requests.

use keywright_harness::Server;
use reqwest::Method;
use serde_json::{Value, json};

use super::{events_of, touched};
use crate::given;

/// A failing request: method, path, body, status, action, and the names in its events.
type Failing<'a> = (Method, &'a str, Value, u16, &'a str, &'a [&'a str]);

#[tokio::test]
async fn each_failure_is_audited_with_status_and_request() {
    let server = Server::start().await;
    given::set_value(&server, "/a", "v").await;
    let unknown_id = "/api/v1/data/11111111-2222-4333-8444-555555555555";
    let cases: [Failing<'_>; 12] = [
        (
            Method::GET,
            "/api/v1/data?name=/absent",
            Value::Null,
            404,
            "GET",
            &["read /absent"],
        ),
        (Method::GET, unknown_id, Value::Null, 404, "GET", &[]),
        (Method::GET, "/api/v1/data", Value::Null, 400, "GET", &[]),
        (
            Method::GET,
            "/api/v1/data?name=/a&versions=x",
            Value::Null,
            400,
            "GET",
            &[],
        ),
        (
            Method::GET,
            "/api/v1/data?path=a&path=b",
            Value::Null,
            400,
            "FIND",
            &[],
        ),
        (
            Method::DELETE,
            "/api/v1/data?name=/absent",
            Value::Null,
            404,
            "DELETE",
            &["delete /absent"],
        ),
        (
            Method::PUT,
            "/api/v1/data",
            json!({"name": "/a", "bogus": 1}),
            422,
            "SET",
            &[],
        ),
        (
            Method::PUT,
            "/api/v1/data",
            json!({"name": "/a", "type": "password", "value": "x"}),
            400,
            "SET",
            &["write /a"],
        ),
        (
            Method::POST,
            "/api/v1/data",
            json!([]),
            400,
            "GENERATE",
            &[],
        ),
        (
            Method::POST,
            "/api/v1/data",
            json!({"regenerate": true, "bogus": 1}),
            400,
            "REGENERATE",
            &[],
        ),
        (
            Method::POST,
            "/api/v1/regenerate",
            json!({"name": "/absent"}),
            404,
            "REGENERATE",
            &["write /absent"],
        ),
        (
            Method::GET,
            "/api/v1/certificates?name=/absent",
            Value::Null,
            404,
            "GET_CERTIFICATE",
            &["read /absent"],
        ),
    ];
    for (method, path, body, status, action, resources) in cases {
        let what = format!("{method} {path} {body}");
        let request = server.authorized(method, path).body(body.to_string());
        let answer = server.send(request).await;
        assert_eq!(answer.status, status, "{what}: {}", answer.body);
        let events = events_of(&server, &answer);
        assert_eq!(touched(&events), resources, "{what}");
        assert_eq!(events.len(), 1, "{what}");
        assert_eq!(events[0]["status"], status, "{what}");
        assert_eq!(events[0]["action"], action, "{what}");
    }
}

#[tokio::test]
async fn a_refused_caller_is_audited_with_operation_and_name() {
    let server = Server::start().await;
    let version = given::set_value(&server, "/a", "v").await;
    let stranger = server.as_client("stranger").await;
    let by_id = format!("/api/v1/data/{}", given::id(&version));
    for (answer, status, resource) in [
        (stranger.get("/api/v1/data?name=/a").await, 404, "read /a"),
        (stranger.get(&by_id).await, 404, "read /a"),
        (
            stranger
                .put(
                    "/api/v1/data",
                    json!({"name": "/a", "type": "value", "value": "w"}),
                )
                .await,
            403,
            "write /a",
        ),
        (
            stranger.delete("/api/v1/data?name=/a").await,
            404,
            "delete /a",
        ),
    ] {
        assert_eq!(answer.status, status, "{resource}");
        let events = events_of(&server, &answer);
        assert_eq!(touched(&events), [resource]);
        assert_eq!(events[0]["actor"], "uaa-client:stranger");
        assert_eq!(events[0]["status"], status);
        assert_eq!(events[0]["version_id"], Value::Null, "{resource}");
    }
}

#[tokio::test]
async fn a_failed_interpolation_audits_references_up_to_the_failure() {
    let server = Server::start().await;
    given::set(&server, "/json", "json", json!({"a": 1})).await;
    let reference = |name: &str| json!({"credentials": {"credhub-ref": name}});
    let document = json!({"s": [reference("/json"), reference("/absent")]});
    let answer = server
        .post("/api/v1/interpolate", document)
        .await
        .expect(404);
    let events = events_of(&server, &answer);
    assert_eq!(touched(&events), ["read /absent", "read /json"]);
    assert!(events.iter().all(|event| event["status"] == 404));
}

#[tokio::test]
async fn a_body_over_the_limit_is_audited() {
    let server = Server::start().await;
    let body = json!({"name": "/a", "type": "value", "value": "v".repeat(2 * 1024 * 1024)});
    let answer = server.put("/api/v1/data", body).await.expect(413);
    let events = events_of(&server, &answer);
    assert_eq!(events.len(), 1);
    assert_eq!(events[0]["status"], 413);
}

#[tokio::test]
async fn read_only_mode_changes_and_refusals_are_audited() {
    let server = Server::start().await;
    let mode = json!({"read_only_mode": true});
    let switched = server.post("/management", mode.clone()).await.expect(200);
    let refused = server.set("/a", "value", json!("v")).await.expect(503);
    let asked = server.get("/management").await.expect(200);
    for (answer, status, action, details) in [
        (switched, 200, "SET_MANAGEMENT", mode),
        (refused, 503, "SET", Value::Null),
        (asked, 200, "GET_MANAGEMENT", Value::Null),
    ] {
        let events = events_of(&server, &answer);
        assert_eq!(events.len(), 1, "{action}");
        assert_eq!(events[0]["status"], status, "{action}");
        assert_eq!(events[0]["action"], action);
        assert_eq!(events[0]["actor"], "uaa-client:developer");
        assert_eq!(events[0]["request_details"], details, "{action}");
    }
}
