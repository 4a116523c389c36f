//! A request that touches several resources has an event for each.

use keywright_harness::Server;
use serde_json::{Value, json};

use super::{events_of, touched};
use crate::given;

/// The distinct ids of versions in events.
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
async fn each_version_read_is_one_event() {
    let server = Server::start().await;
    for text in ["1", "2", "3"] {
        given::set_value(&server, "/a", text).await;
    }
    let answer = server.get("/api/v1/data?name=/a").await.expect(200);
    let read: Vec<String> = given::data(&answer).iter().map(given::id).collect();
    assert_eq!(read.len(), 3);
    assert_eq!(version_ids(&events_of(&server, &answer)), sorted(read));
}

#[tokio::test]
async fn each_distinct_reference_is_one_event() {
    let server = Server::start().await;
    let mut ids = Vec::new();
    for name in ["/x", "/y", "/z"] {
        ids.push(given::id(
            &given::set(&server, name, "json", json!({"a": 1})).await,
        ));
    }
    let reference = |name: &str| json!({"credentials": {"credhub-ref": name}});
    let document =
        json!({"s": [reference("/x"), reference("/y"), reference("/z"), reference("/x")]});
    let answer = server
        .post("/api/v1/interpolate", document)
        .await
        .expect(200);
    let events = events_of(&server, &answer);
    assert_eq!(touched(&events), ["read /x", "read /y", "read /z"]);
    assert_eq!(version_ids(&events), sorted(ids));
}

#[tokio::test]
async fn a_document_without_references_is_one_event() {
    let server = Server::start().await;
    let answer = server
        .post("/api/v1/interpolate", json!({"a": 1}))
        .await
        .expect(200);
    let events = events_of(&server, &answer);
    assert_eq!(events.len(), 1);
    assert_eq!(events[0]["resource_name"], Value::Null);
}

#[tokio::test]
async fn bulk_regeneration_audits_the_id_of_each_new_version() {
    let server = Server::start().await;
    given::generate_certificate(&server, "/root", json!({"is_ca": true})).await;
    for name in ["/a", "/b", "/c"] {
        given::generate_certificate(&server, name, json!({"ca": "/root"})).await;
    }
    let answer = server.bulk_regenerate("/root").await.expect(200);
    let mut written = events_of(&server, &answer);
    written.retain(|event| event["operation"] == "write");
    assert_eq!(touched(&written), ["write /a", "write /b", "write /c"]);
    for event in written {
        let name = event["resource_name"].as_str().unwrap();
        let newest = given::newest(&server, name).await;
        assert_eq!(event["version_id"], newest["id"], "{name}");
    }
}

#[tokio::test]
async fn signing_a_certificate_is_audited_for_leaf_and_signer() {
    let server = Server::start().await;
    let root = given::generate_certificate(&server, "/root", json!({"is_ca": true})).await;
    let answer = server
        .generate(
            "/leaf",
            "certificate",
            json!({"common_name": "l", "key_type": given::QUICK_KEY, "ca": "/root"}),
        )
        .await
        .expect(200);
    let events = events_of(&server, &answer);
    assert_eq!(events.len(), 2);
    assert_eq!(
        version_ids(&events),
        sorted(vec![given::id(&root), given::id(&answer.json())])
    );
}

#[tokio::test]
async fn a_deleted_credential_is_audited_by_id() {
    let server = Server::start().await;
    given::set_value(&server, "/a", "v").await;
    let set = super::events(&server).remove(0);
    let answer = server.delete("/api/v1/data?name=/a").await.expect(204);
    let event = events_of(&server, &answer).remove(0);
    assert_eq!(event["resource_id"], set["resource_id"]);
    assert_eq!(event["version_id"], Value::Null);
}
