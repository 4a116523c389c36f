//! The fields of an event.

use chrono::Utc;
use keywright_harness::Server;
use reqwest::Method;
use serde_json::{Value, json};

use super::{events, events_of};
use crate::given;

#[tokio::test]
async fn an_event_names_actor_action_resource_source_and_status() {
    let server = Server::start().await;
    let before = Utc::now().timestamp_millis();
    let version = given::set_value(&server, "/a", "v").await;
    let answer = server
        .get("/api/v1/data?current=true&name=%2Fa")
        .await
        .expect(200);
    let after = Utc::now().timestamp_millis();

    let mut event = events_of(&server, &answer).remove(0);
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
    assert_eq!(
        event,
        json!({
            "time": null,
            "request_id": answer.header("x-request-id"),
            "actor": "uaa-client:developer",
            "subject": "developer",
            "authentication": "uaa",
            "method": "GET",
            "request": "/api/v1/data?current=true&name=%2Fa",
            "status": 200,
            "source": "127.0.0.1",
            "peer": null,
            "destination": host.trim(),
            "action": "GET",
            "operation": "read",
            "resource_name": "/a",
            "resource_id": null,
            "version_id": given::id(&version),
            "request_details": null,
        })
    );
}

#[tokio::test]
async fn the_event_of_a_search_contains_its_terms() {
    let server = Server::start().await;
    for (query, details) in [
        ("path=/a", json!({"path": "/a"})),
        ("path=", json!({"path": ""})),
        ("name-like=%2Fb%22", json!({"name-like": "/b\""})),
        (
            "path=/a&expires-within-days=30&effective=true",
            json!({"path": "/a", "expires-within-days": "30", "effective": "true"}),
        ),
        (
            "path=/a&name-like=b",
            json!({"path": "/a", "name-like": "b"}),
        ),
    ] {
        let answer = server.get(&format!("/api/v1/data?{query}")).await;
        let events = events_of(&server, &answer);
        assert_eq!(events.len(), 1, "{query}");
        assert_eq!(events[0]["action"], "FIND", "{query}");
        assert_eq!(events[0]["request_details"], details, "{query}");
    }
}

#[tokio::test]
async fn unknown_query_parameters_are_not_audited() {
    let server = Server::start().await;
    let answer = server
        .get("/api/v1/data?name=/a&access_token=secret&secret")
        .await;
    let event = events_of(&server, &answer).remove(0);
    assert_eq!(event["request"], "/api/v1/data?name=/a&not-shown&not-shown");
}

#[tokio::test]
async fn long_targets_and_names_are_truncated() {
    let server = Server::start().await;
    let name = "n".repeat(5_000);
    let path = format!("/api/v1/data?name={name}");
    let answer = server.get(&path).await.expect(404);
    let event = events_of(&server, &answer).remove(0);
    assert_eq!(event["request"], format!("{}…", &path[..2_048]));
    assert_eq!(event["resource_name"], format!("/{}…", &name[..1_023]));
}

#[tokio::test]
async fn the_user_of_a_token_is_audited_by_id() {
    let server = Server::start().await;
    let id = "3f0b6a3c-5f0e-4a9b-9d0e-6d1c4a1f2b10";
    let user = server.as_user(id).await;
    let answer = user.get("/api/v1/data?name=/a").await.expect(404);
    let event = events_of(&server, &answer).remove(0);
    assert_eq!(event["actor"], format!("uaa-user:{id}"));
    assert_eq!(event["subject"], id);
}

#[tokio::test]
async fn a_forwarded_header_counts_from_trusted_proxies_only() {
    for (proxies, header, source) in [
        ("", "6.6.6.6", "127.0.0.1"),
        ("trusted_proxies = [\"10.0.0.1\"]", "6.6.6.6", "127.0.0.1"),
        ("trusted_proxies = [\"127.0.0.1\"]", "6.6.6.6", "6.6.6.6"),
        (
            "trusted_proxies = [\"127.0.0.1\"]",
            "6.6.6.6, 7.7.7.7",
            "7.7.7.7",
        ),
        (
            "trusted_proxies = [\"127.0.0.1\"]",
            "somewhere | x=y",
            "127.0.0.1",
        ),
    ] {
        let section = format!("[audit]\nsink = \"file\"\nfile = \"audit.log\"\n{proxies}\n");
        let options = keywright_harness::Options::default().audit(&section);
        let server = Server::start_with(&options).await;
        let request = server
            .authorized(Method::GET, "/api/v1/data?name=/a")
            .header("X-Forwarded-For", header);
        let answer = server.send(request).await;
        let event = events_of(&server, &answer).remove(0);
        assert_eq!(event["source"], source, "{proxies} {header}");
        let peer = event["peer"].as_str().unwrap();
        assert!(peer.starts_with("127.0.0.1:"), "{peer}");
    }
}
