//! The action, the resources and the details of each request's events.

use keywright_harness::{QUICK_KEY, Server};
use serde_json::{Value, json};

use super::{events_of, touched};
use crate::{certificates::Certificate, external_certificates, given};

/// Sends the requests of a table one after the other, and checks the events of each. In each line, the expected action
/// and the resources follow the request, separated by ` | `.
async fn assert_audited(server: &Server, table: &str) {
    for line in table.lines().filter(|line| !line.trim().is_empty()) {
        let mut columns = line.split(" | ").map(str::trim);
        let (request, action) = (columns.next().unwrap(), columns.next().unwrap());
        let resources: Vec<&str> = columns.collect();
        let (status, method, path, body) = given::requests(request).remove(0);
        let response = given::send(server, method.clone(), &path, &body).await;
        let response = response.expect(status);
        let events = events_of(server, &response);
        assert!(!events.is_empty(), "{line}");
        for event in &events {
            assert_eq!(event["action"], action, "{line}");
            assert_eq!(event["status"], status, "{line}");
            assert_eq!(event["method"], method.as_str(), "{line}");
        }
        assert_eq!(touched(&events), resources, "{line}");
        if resources.is_empty() || status >= 400 {
            assert_eq!(events.len(), 1, "{line}");
        }
    }
}

const CREDENTIALS: &str = r#"
    200 PUT /api/v1/data {"name": "/new", "type": "value", "value": "v"} | SET | write /new
    200 POST /api/v1/data {"name": "/p", "type": "password"} | GENERATE | write /p
    200 POST /api/v1/data {leaf} | GENERATE | read /root | write /leaf
    200 POST /api/v1/data {"name": "/password", "regenerate": true} | REGENERATE | write /password
    200 POST /api/v1/regenerate {"name": "/password"} | REGENERATE | write /password
    200 POST /api/v1/regenerate {"name": "/leaf"} | REGENERATE | read /root | write /leaf
    200 POST /api/v1/bulk-regenerate {"signed_by": "/root"} | BULK_REGENERATE | read /root | write /leaf
    200 GET /api/v1/data?name=/value | GET | read /value
    200 GET /api/v1/data?name=/VALUE&current=true | GET | read /VALUE
    200 GET /api/v1/data/{id} | GET | read /value
    200 HEAD /api/v1/data?name=/value | GET | read /value
    200 GET /api/v1/data?path=/ | FIND
    200 GET /api/v1/data?name-like=val | FIND
    200 GET /api/v1/data?path=/&expires-within-days=3&effective=true | FIND
    200 POST /api/v1/interpolate {"s": [{"credentials": {"credhub-ref": "((/json))"}}]} | INTERPOLATE | read /json
    204 DELETE /api/v1/data?name=/value | DELETE | delete /value
    404 GET /nowhere | UNKNOWN
    404 PATCH /api/v1/data | UNKNOWN
"#;

#[tokio::test]
async fn each_credential_request_is_audited_with_its_action() {
    let server = Server::reused().await;
    let version = server.set_value("/value", "v").await;
    server.stored("/json", "json", json!({"a": 1})).await;
    server.generated("/password", "password", json!({})).await;
    server.issued("/root", json!({"is_ca": true})).await;
    server.issued("/leaf", json!({"ca": "/root"})).await;
    let leaf = json!({"name": "/leaf", "type": "certificate", "mode": "overwrite",
        "parameters": {"common_name": "l", "key_type": QUICK_KEY, "ca": "/root"}});
    let table = CREDENTIALS.replace("{leaf}", &leaf.to_string());
    assert_audited(&server, &table.replace("{id}", &given::id(&version))).await;
}

#[tokio::test]
async fn the_events_of_a_bulk_regeneration_contain_its_options() {
    let server = Server::reused().await;
    server.issued("/root", json!({"is_ca": true})).await;
    server.issued("/leaf", json!({"ca": "/root"})).await;
    let digest = "0".repeat(64);
    for body in given::each(json!([
        {"signed_by": "/root"},
        {"signed_by": "/root", "dry_run": "true"},
        {"generated_by": digest, "path": "/a", "keep_going": true},
        {"derived_from": "/a"},
    ])) {
        let response = server.post("/api/v1/bulk-regenerate", body.clone()).await;
        let mut details = body.clone();
        for option in ["dry_run", "keep_going"] {
            details[option] = json!(!body[option].is_null());
        }
        for event in events_of(&server, &response) {
            assert_eq!(event["request_details"], details, "{body}");
        }
    }
}

const CERTIFICATES: &str = r#"
    200 GET /api/v1/certificates | GET_ALL_CERTIFICATES
    200 GET /api/v1/certificates/ | GET_ALL_CERTIFICATES
    200 GET /api/v1/certificates?name=/root | GET_CERTIFICATE | read /root
    200 GET {leaf}/versions | GET_CERTIFICATE_VERSIONS | read /leaf
    200 POST {leaf}/regenerate {"set_as_transitional": true} | REGENERATE_CERTIFICATE | read /root | write /leaf
    200 PUT {leaf}/update_transitional_version {"version": null} | UPDATE_TRANSITIONAL_VERSION | write /leaf
    200 POST {leaf}/versions {external} | ADD_CERTIFICATE_VERSION | write /leaf
    200 DELETE {leaf}/versions/{old} | DELETE_CERTIFICATE_VERSION | delete /leaf
"#;

#[tokio::test]
async fn each_certificate_request_is_audited_with_its_action() {
    let server = Server::reused().await;
    server.issued("/root", json!({"is_ca": true})).await;
    let leaf = Certificate::generate(&server, "/leaf", json!({"ca": "/root"})).await;
    let old = given::id(&leaf.versions().await[0]);
    let external = external_certificates::authority("brought");
    let external = json!({"value": {"certificate": external.certificate}});
    let table = CERTIFICATES.replace("{leaf}", leaf.path("").trim_end_matches('/'));
    let table = table.replace("{external}", &external.to_string());
    assert_audited(&server, &table.replace("{old}", &old)).await;
}

const FAILURES: &str = r#"
    404 GET /api/v1/data?name=/absent | GET | read /absent
    404 GET /api/v1/data/11111111-2222-4333-8444-555555555555 | GET
    400 GET /api/v1/data | GET
    400 GET /api/v1/data?name=/a&versions=x | GET
    400 GET /api/v1/data?path=a&path=b | FIND
    404 DELETE /api/v1/data?name=/absent | DELETE | delete /absent
    422 PUT /api/v1/data {"name": "/a", "bogus": 1} | SET
    400 PUT /api/v1/data {"name": "/a", "type": "password", "value": "x"} | SET | write /a
    400 POST /api/v1/data [] | GENERATE
    400 POST /api/v1/data {"regenerate": true, "bogus": 1} | REGENERATE
    404 POST /api/v1/regenerate {"name": "/absent"} | REGENERATE | write /absent
    404 GET /api/v1/certificates?name=/absent | GET_CERTIFICATE | read /absent
    413 PUT /api/v1/data {"name": "/a", "type": "value", "value": "LONG"} | SET
"#;

#[tokio::test]
async fn each_failure_is_audited_with_status_and_request() {
    let server = Server::reused().await;
    server.set_value("/a", "v").await;
    let failures = FAILURES.replace("LONG", &"v".repeat(2 * 1024 * 1024));
    assert_audited(&server, &failures).await;
}

// Events of permission changes.

/// Returns a body for `/api/v1/permissions` that grants read and write to these actors.
fn granting(actors: &[String]) -> Value {
    let entries = actors
        .iter()
        .map(|actor| json!({"path": "/a", "actor": actor, "operations": ["read", "write"]}));
    json!({"credential_name": "/a", "permissions": entries.collect::<Vec<_>>()})
}

#[tokio::test]
async fn each_of_a_hundred_grants_in_one_request_is_audited_in_full() {
    let server = Server::reused().await;
    let actors = (0..100).map(|number| format!("{number:03}{}", "\u{10348}".repeat(252)));
    let actors: Vec<String> = actors.collect();
    let stranger = server.as_client("stranger").await;
    let path = "/api/v1/permissions";
    let refused = stranger.post(path, granting(&actors)).await;
    let granted = server.post(path, granting(&actors)).await;
    for (response, status, is_identified) in [(refused, 404, false), (granted, 201, true)] {
        let events = events_of(&server, &response.expect(status));
        assert_eq!(events.len(), actors.len());
        for (event, actor) in events.iter().zip(&actors) {
            let details = json!({"actor": actor, "operations": ["read", "write"]});
            assert_eq!(event["request_details"], details);
            assert_eq!(event["action"], "ADD_PERMISSIONS");
            assert_eq!(event["operation"], "write_acl");
            assert_eq!(event["resource_name"], "/a");
            assert_eq!(event["resource_id"].is_string(), is_identified);
        }
    }
}

/// Requests and the details of their events.
const PERMISSION_CHANGES: &str = r#"
    200 PATCH {one} {"operations": ["write"]} | {"actor": "someone", "operations": ["write"]}
    200 PUT {one} {"path": "/a", "actor": "someone", "operations": ["read", "delete"]} | {"actor": "someone", "operations": ["read", "delete"]}
    409 POST /api/v2/permissions {"path": "/a", "actor": "someone", "operations": ["write"]} | {"actor": "someone", "operations": ["write"]}
    200 DELETE {one} | {"actor": "someone", "operations": ["read", "delete"]}
    404 DELETE /api/v1/permissions?credential_name=/a&actor=someone | {"actor": "someone"}
    201 POST /api/v2/permissions {"path": "/a", "actor": "someone", "operations": ["read"]} | {"actor": "someone", "operations": ["read"]}
    204 DELETE /api/v1/permissions?credential_name=/a&actor=someone | {"actor": "someone", "operations": ["read"]}
    404 PATCH {unknown} {"operations": ["write"]} | {"operations": ["write"]}
    404 PUT {unknown} {"path": "/a", "actor": "someone", "operations": ["read"]} | {"actor": "someone", "operations": ["read"]}
    404 DELETE {unknown} | null
"#;

#[tokio::test]
async fn permission_changes_are_audited_with_actor_and_operations() {
    let server = Server::reused().await;
    let id = server.grant("/a", "someone", &["read"]).await;
    let table = PERMISSION_CHANGES
        .replace("{one}", &format!("/api/v2/permissions/{id}"))
        .replace(
            "{unknown}",
            "/api/v2/permissions/0b7f1c52-6f5e-4d43-8f0d-0d5c3c1b9a77",
        );
    for line in table.trim().lines() {
        let (request, details) = line.split_once(" | ").unwrap();
        let (status, method, path, body) = given::requests(request).remove(0);
        let response = given::send(&server, method, &path, &body).await;
        let events = events_of(&server, &response.expect(status));
        assert_eq!(events.len(), 1, "{line}");
        let details: Value = serde_json::from_str(details).unwrap();
        assert_eq!(events[0]["request_details"], details, "{line}");
    }
}
