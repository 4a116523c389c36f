//! The fields of events, the events of requests that touch several resources or fail, and requests without events.

use chrono::Utc;
use keywright_harness::{Options, QUICK_KEY, Response, Server};
use reqwest::{Method, header};
use serde_json::{Value, json};

use super::{events, events_of, touched};
use crate::given;

// The fields of an event.

#[tokio::test]
async fn an_event_names_actor_action_resource_source_and_status() {
    let server = Server::reused().await;
    let before = Utc::now().timestamp_millis();
    let version = server.set_value("/a", "v").await;
    let response = server.get("/api/v1/data?current=true&name=%2Fa").await;
    let after = Utc::now().timestamp_millis();

    let mut event = events_of(&server, &response).remove(0);
    let time = event["time"].as_i64().unwrap();
    assert!((before..=after).contains(&time), "{time}");
    let peer = event["peer"].as_str().unwrap().to_owned();
    assert!(peer.starts_with("127.0.0.1:"), "{peer}");
    let set = &events(&server)[0];
    assert_eq!(event["resource_id"], set["resource_id"]);
    assert!(event["resource_id"].is_string());
    for varying in ["time", "peer", "resource_id"] {
        event[varying] = Value::Null;
    }
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    let expected = json!({
        "time": null, "request_id": response.header("x-request-id"), "actor": "uaa-client:developer",
        "subject": "developer", "authentication": "uaa", "method": "GET",
        "request": "/api/v1/data?current=true&name=%2Fa", "status": 200, "source": "127.0.0.1", "peer": null,
        "destination": host.trim(), "action": "GET", "operation": "read", "resource_name": "/a", "resource_id": null,
        "version_id": version["id"], "request_details": null,
    });
    assert_eq!(event, expected);
}

#[tokio::test]
async fn the_event_of_a_search_contains_its_terms() {
    let server = Server::reused().await;
    let expiring = json!({"path": "/a", "expires-within-days": "30", "effective": "true"});
    for (query, details) in [
        ("path=/a", json!({"path": "/a"})),
        ("path=", json!({"path": ""})),
        ("name-like=%2Fb%22", json!({"name-like": "/b\""})),
        (
            "path=/a&name-like=b",
            json!({"path": "/a", "name-like": "b"}),
        ),
        ("path=/a&expires-within-days=30&effective=true", expiring),
    ] {
        let response = server.get(&format!("/api/v1/data?{query}")).await;
        let events = events_of(&server, &response);
        assert_eq!(events.len(), 1, "{query}");
        assert_eq!(events[0]["action"], "FIND", "{query}");
        assert_eq!(events[0]["request_details"], details, "{query}");
    }
}

#[tokio::test]
async fn leading_zeros_do_not_remove_the_terms_of_a_search() {
    let server = Server::reused().await;
    let search = async |zeros: usize| {
        let days = format!("{}30", "0".repeat(zeros));
        let query = format!("expires-within-days={days}&name-like=a");
        let response = server.get(&format!("/api/v1/data?{query}")).await;
        let mut event = events_of(&server, &response).remove(0);
        let details = event["request_details"]["name-like"].take();
        (response.status, details)
    };
    assert_eq!(search(18).await, (200, json!("a")));
    // Details of more than 4,096 bytes are omitted.
    for zeros in [19, 5_000] {
        assert_eq!(search(zeros).await.0, 400, "{zeros}");
    }
}

#[tokio::test]
async fn unknown_parameters_are_omitted_and_long_texts_truncated() {
    let server = Server::reused().await;
    for (target, request) in [
        (
            "/api/v1/data?name=/a&access_token=secret&secret",
            "/api/v1/data?name=/a&not-shown&not-shown",
        ),
        ("/api/v1/data;x", "/api/v1/data;x"),
        ("/info%2f..%2fapi%00", "/info%2f..%2fapi%00"),
        ("/a%zz?name=/a&token=t", "/a%zz?name=/a&not-shown"),
    ] {
        let response = server.get(target).await.expect(404);
        let event = events_of(&server, &response).remove(0);
        assert_eq!(event["request"], request);
    }
    let name = "n".repeat(5_000);
    let path = format!("/api/v1/data?name={name}");
    let response = server.get(&path).await.expect(404);
    let event = events_of(&server, &response).remove(0);
    assert_eq!(event["request"], format!("{}…", &path[..2_048]));
    assert_eq!(event["resource_name"], format!("/{}…", &name[..1_023]));
}

#[tokio::test]
async fn the_user_of_a_token_is_audited_by_id() {
    let server = Server::reused().await;
    let id = "3f0b6a3c-5f0e-4a9b-9d0e-6d1c4a1f2b10";
    let user = server.as_user(id).await;
    let response = user.get("/api/v1/data?name=/a").await.expect(404);
    let event = events_of(&server, &response).remove(0);
    assert_eq!(event["actor"], format!("uaa-user:{id}"));
    assert_eq!(event["subject"], id);
}

#[tokio::test]
async fn x_forwarded_for_is_used_from_trusted_proxies_only() {
    let from_a_trusted_proxy = [
        ("6.6.6.6", "6.6.6.6"),
        ("6.6.6.6, 7.7.7.7", "7.7.7.7"),
        ("somewhere | x=y", "127.0.0.1"),
    ];
    let from_another = &[("6.6.6.6", "127.0.0.1")][..];
    for (proxies, sources) in [
        ("", from_another),
        (r#"trusted_proxies = ["10.0.0.1"]"#, from_another),
        (r#"trusted_proxies = ["127.0.0.1"]"#, &from_a_trusted_proxy),
    ] {
        let section = format!("[audit]\nsink = \"file\"\nfile = \"audit.log\"\n{proxies}\n");
        let server = Server::start_with(&Options::default().audit(&section)).await;
        for (header, source) in sources {
            let request = server
                .authorized(Method::GET, "/api/v1/data?name=/a")
                .header("X-Forwarded-For", *header);
            let response = server.send(request).await;
            let event = events_of(&server, &response).remove(0);
            assert_eq!(event["source"], *source, "{proxies} {header}");
            let peer = event["peer"].as_str().unwrap();
            assert!(peer.starts_with("127.0.0.1:"), "{peer}");
        }
    }
}

// A request that touches several resources has an event for each.

/// Returns the ids of the versions in events, sorted.
fn version_ids(events: &[Value]) -> Vec<String> {
    let mut ids: Vec<String> = events
        .iter()
        .map(|event| event["version_id"].as_str().unwrap_or_default().to_owned())
        .collect();
    ids.sort();
    ids
}

fn sorted(mut texts: Vec<String>) -> Vec<String> {
    texts.sort();
    texts
}

#[tokio::test]
async fn a_read_has_one_event_per_returned_version() {
    let server = Server::reused().await;
    for text in ["1", "2", "3"] {
        server.set_value("/a", text).await;
    }
    let response = server.get("/api/v1/data?name=/a").await.expect(200);
    let read = given::versions_in(&response);
    let read: Vec<String> = read.iter().map(given::id).collect();
    assert_eq!(read.len(), 3);
    assert_eq!(version_ids(&events_of(&server, &response)), sorted(read));
}

#[tokio::test]
async fn interpolation_has_one_event_per_reference_and_at_least_one() {
    let server = Server::reused().await;
    let mut ids = Vec::new();
    for name in ["/x", "/y", "/z"] {
        let version = server.stored(name, "json", json!({"a": 1})).await;
        ids.push(given::id(&version));
    }
    let reference = |name: &str| json!({"credentials": {"credhub-ref": name}});
    let bindings = ["/x", "/y", "/z", "/x"].map(reference);
    let document = json!({"s": bindings});
    let response = server.post("/api/v1/interpolate", document).await;
    let events = events_of(&server, &response.expect(200));
    assert_eq!(touched(&events), ["read /x", "read /y", "read /z"]);
    assert_eq!(version_ids(&events), sorted(ids));
    let response = server.post("/api/v1/interpolate", json!({"a": 1})).await;
    let events = events_of(&server, &response.expect(200));
    assert_eq!(events.len(), 1);
    assert_eq!(events[0]["resource_name"], Value::Null);
}

#[tokio::test]
async fn bulk_regeneration_audits_the_id_of_each_new_version() {
    let server = Server::reused().await;
    server.issued("/root", json!({"is_ca": true})).await;
    for name in ["/a", "/b", "/c"] {
        server.issued(name, json!({"ca": "/root"})).await;
    }
    let response = server.bulk_regenerate("/root").await.expect(200);
    expect_newest(&server, &response, &["write /a", "write /b", "write /c"]).await;
}

#[tokio::test]
async fn each_step_of_a_rotation_audits_the_versions_that_it_adds() {
    let concatenated = Options::default().extra("\n[certificates]\nconcatenate_cas = true");
    let server = Server::start_with(&concatenated).await;
    server.issued("/root", json!({"is_ca": true})).await;
    for name in ["/a", "/b"] {
        server.issued(name, json!({"ca": "/root"})).await;
    }
    let path = server.certificate_path("/root").await;
    let regenerate = json!({"set_as_transitional": true});
    let added = server.post(&format!("{path}/regenerate"), regenerate).await;
    expect_newest(&server, &added.expect(200), &["write /a", "write /b"]).await;
    let update = format!("{path}/update_transitional_version");
    let cleared = server.put(&update, json!({"version": null})).await;
    expect_newest(&server, &cleared.expect(200), &["write /a", "write /b"]).await;
}

/// Expects that the events about other resources than the CA are these, and that each names the newest version.
async fn expect_newest(server: &Server, response: &Response, expected: &[&str]) {
    let mut written = events_of(server, response);
    written.retain(|event| event["resource_name"] != "/root");
    assert_eq!(touched(&written), expected);
    for event in written {
        let name = event["resource_name"].as_str().unwrap();
        let newest = server.newest(name).await;
        assert_eq!(event["version_id"], newest["id"], "{name}");
    }
}

#[tokio::test]
async fn signing_a_certificate_is_audited_for_leaf_and_signer() {
    let server = Server::reused().await;
    let root = server.issued("/root", json!({"is_ca": true})).await;
    let leaf = json!({"common_name": "l", "key_type": QUICK_KEY, "ca": "/root"});
    let response = server.generate("/leaf", "certificate", leaf).await;
    let events = events_of(&server, &response);
    assert_eq!(events.len(), 2);
    let ids = [&root, &response.json()].map(given::id);
    assert_eq!(version_ids(&events), sorted(ids.to_vec()));
}

#[tokio::test]
async fn a_deleted_credential_is_audited_by_id() {
    let server = Server::reused().await;
    server.set_value("/a", "v").await;
    let set = super::events(&server).remove(0);
    let response = server.delete("/api/v1/data?name=/a").await.expect(204);
    let event = events_of(&server, &response).remove(0);
    assert_eq!(event["resource_id"], set["resource_id"]);
    assert_eq!(event["version_id"], Value::Null);
}

// Events of failed requests.

#[tokio::test]
async fn a_refused_caller_is_audited_with_operation_and_name() {
    let server = Server::reused().await;
    let version = server.set_value("/a", "v").await;
    let stranger = server.as_client("stranger").await;
    let by_id = format!("/api/v1/data/{}", given::id(&version));
    let by_name = "/api/v1/data?name=/a";
    let body = json!({"name": "/a", "type": "value", "value": "w"});
    for (response, status, resource) in [
        (stranger.get(by_name).await, 404, "read /a"),
        (stranger.get(&by_id).await, 404, "read /a"),
        (stranger.put("/api/v1/data", body).await, 403, "write /a"),
        (stranger.delete(by_name).await, 404, "delete /a"),
    ] {
        assert_eq!(response.status, status, "{resource}");
        let events = events_of(&server, &response);
        assert_eq!(touched(&events), [resource]);
        assert_eq!(events[0]["actor"], "uaa-client:stranger");
        assert_eq!(events[0]["status"], status);
        assert_eq!(events[0]["version_id"], Value::Null, "{resource}");
    }
}

#[tokio::test]
async fn an_unknown_id_is_audited_with_operation_and_id() {
    let server = Server::reused().await;
    for (path, field) in [
        ("/api/v1/data/ID", "version_id"),
        ("/api/v1/certificates/ID/versions", "resource_id"),
        ("/api/v2/permissions/ID", "resource_id"),
    ] {
        let response = server
            .get(&path.replace("ID", UNKNOWN_ID))
            .await
            .expect(404);
        let [event] = &events_of(&server, &response)[..] else {
            panic!("{path} has several events");
        };
        for other in ["resource_name", "resource_id", "version_id"] {
            let expected = (other == field).then_some(UNKNOWN_ID);
            assert_eq!(event[other].as_str(), expected, "{path}: {other}");
        }
        assert!(event["operation"].as_str().unwrap().starts_with("read"));
    }
}

const UNKNOWN_ID: &str = "0b7f1c52-6f5e-4d43-8f0d-0d5c3c1b9a77";

#[tokio::test]
async fn a_failed_interpolation_audits_references_up_to_the_failure() {
    let server = Server::reused().await;
    server.stored("/json", "json", json!({"a": 1})).await;
    let reference = |name: &str| json!({"credentials": {"credhub-ref": name}});
    let document = json!({"s": [reference("/json"), reference("/absent")]});
    let response = server.post("/api/v1/interpolate", document).await;
    let events = events_of(&server, &response.expect(404));
    assert_eq!(touched(&events), ["read /absent", "read /json"]);
    assert!(events.iter().all(|event| event["status"] == 404));
}

#[tokio::test]
async fn read_only_mode_changes_and_refusals_are_audited() {
    let server = Server::reused().await;
    let mode = json!({"read_only_mode": true});
    let switched = server.post("/management", mode.clone()).await.expect(200);
    let refused = server.set("/a", "value", json!("v")).await.expect(503);
    let read = server.get("/management").await.expect(200);
    for (response, status, action, details) in [
        (switched, 200, "SET_MANAGEMENT", mode),
        (refused, 503, "SET", Value::Null),
        (read, 200, "GET_MANAGEMENT", Value::Null),
    ] {
        let events = events_of(&server, &response);
        assert_eq!(events.len(), 1, "{action}");
        assert_eq!(events[0]["status"], status, "{action}");
        assert_eq!(events[0]["action"], action);
        assert_eq!(events[0]["actor"], "uaa-client:developer");
        assert_eq!(events[0]["request_details"], details, "{action}");
    }
}

// Requests without events.

#[tokio::test]
async fn open_and_unauthenticated_requests_are_not_audited() {
    let server = Server::reused().await;
    let open = "/info /health /version /info/ /version/ /api/v1/key-usage /api/v1/types /docs /openapi.json";
    for path in open.split(' ') {
        server.get(path).await.expect(200);
    }
    let closed =
        "/api/v1/data?name=/a /api/v1/certificates /api/v2/permissions/x /management /nowhere";
    for path in closed.split(' ') {
        let anonymous = server.send(server.request(Method::GET, path)).await;
        anonymous.expect(401);
        let forged = server
            .request(Method::GET, path)
            .header(header::AUTHORIZATION, format!("Bearer {}x", server.token()));
        assert_eq!(server.send(forged).await.status, 401, "{path}");
    }
    given::user_token(&server).await;
    assert!(events(&server).is_empty(), "{:?}", events(&server));

    server.get("/api/v1/data?name=/a").await.expect(404);
    assert_eq!(events(&server).len(), 1, "the trail records no requests");
}
