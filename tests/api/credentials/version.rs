//! The credential version object.

use std::collections::HashSet;

use keywright_harness::{QUICK_KEY, Server};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::{external_certificates, given};

#[tokio::test]
async fn every_version_begins_with_the_same_fields_in_order() {
    let server = Server::reused().await;
    let authority = external_certificates::authority("root").public();
    let mut versions = vec![
        server.set_value("/value", "v").await,
        server.stored("/json", "json", json!({"k": 1})).await,
        server.stored("/set", "certificate", authority).await,
        server.generated("/password", "password", json!({})).await,
        server.generated("/user", "user", json!({})).await,
        server.generated("/rsa", "rsa", json!({})).await,
        server.generated("/ssh", "ssh", json!({})).await,
        server
            .issued("/certificate", json!({"self_sign": true}))
            .await,
    ];
    for name in server.found_names("path=").await {
        versions.extend(server.versions(&name).await);
    }
    assert_eq!(versions.len(), 16);
    for version in versions {
        let fields = given::fields(&version);
        let first = "type version_created_at id name metadata value";
        assert_eq!(fields[..6].join(" "), first, "{version}");
        if version["type"] != "certificate" {
            assert_eq!(fields.len(), 6, "{fields:?}");
        }
    }
}

#[tokio::test]
async fn the_value_of_each_type_has_its_own_fields() {
    let server = Server::reused().await;
    let certificate = json!({"common_name": "c", "self_sign": true, "key_type": QUICK_KEY});
    for (credential_type, parameters, expected) in [
        ("user", json!({}), "username password password_hash"),
        ("rsa", json!({}), "public_key private_key"),
        (
            "ssh",
            json!({}),
            "public_key private_key public_key_fingerprint",
        ),
        ("certificate", certificate, "ca certificate private_key"),
    ] {
        let name = format!("/{credential_type}");
        let made = server.generated(&name, credential_type, parameters).await;
        let read = server.versions(&name).await.remove(0);
        for version in [made, read] {
            let value = version["value"].as_object().unwrap();
            let fields: HashSet<&str> = value.keys().map(String::as_str).collect();
            let expected = expected.split(' ').collect();
            assert_eq!(fields, expected, "{credential_type}");
            assert!(value.values().all(Value::is_string), "{version}");
        }
    }
}

#[tokio::test]
async fn metadata_is_always_present_and_null_by_default() {
    let server = Server::reused().await;
    server.set_value("/none", "v").await;
    server.generated("/generated", "password", json!({})).await;
    for name in ["/none", "/generated"] {
        let version = server.versions(name).await.remove(0);
        assert_eq!(version.get("metadata"), Some(&Value::Null), "{name}");
    }
    let owner = json!({"owner": "team", "tags": [1, null, {"a": "ä"}]});
    for metadata in given::each(json!([owner, {}, [], "text", 0, false, null])) {
        let body = json!({"name": "/a", "type": "value", "value": "v", "metadata": metadata});
        let set = server.put("/api/v1/data", body).await.expect(200).json();
        assert_eq!(set.get("metadata"), Some(&metadata));
        let path = format!("/api/v1/data/{}", given::id(&set));
        assert_eq!(server.get_json(&path).await, set);
    }
}

#[tokio::test]
async fn metadata_comes_from_the_request_and_is_not_inherited() {
    let server = Server::reused().await;
    let body = json!({"name": "/a", "type": "password", "metadata": {"of": "the first"}});
    let response = server.post("/api/v1/data", body.clone()).await;
    let first = response.expect(200).json();
    let second = server.stored("/a", "password", json!("p")).await;
    assert_eq!(second["metadata"], Value::Null);
    for (path, body) in [
        ("data", json!({"type": "password", "mode": "overwrite"})),
        ("data", json!({"regenerate": true})),
        ("regenerate", json!({})),
    ] {
        for metadata in [json!({"of": path}), Value::Null] {
            let mut body = body.clone();
            body["name"] = json!("/a");
            if !metadata.is_null() {
                body["metadata"] = metadata.clone();
            }
            let response = server.post(&format!("/api/v1/{path}"), body).await;
            let version = response.expect(200).json();
            assert_eq!(version.get("metadata"), Some(&metadata), "{path}");
        }
    }
    assert_eq!(server.versions("/a").await.last(), Some(&first));
}

#[tokio::test]
async fn every_timestamp_is_utc_in_whole_seconds() {
    let server = Server::reused().await;
    let before = chrono::Utc::now();
    let certificate = server.issued("/c", json!({"self_sign": true})).await;
    let found = server.get_json("/api/v1/data?path=").await;
    let expiring = server.get_json("/api/v1/data?path=&expires-within-days=400");
    let expiring = expiring.await;
    for timestamp in [
        &certificate["version_created_at"],
        &certificate["expiry_date"],
        &found["credentials"][0]["version_created_at"],
        &expiring["credentials"][0]["version_created_at"],
        &expiring["credentials"][0]["expiry_date"],
    ] {
        let text = timestamp.as_str().unwrap();
        assert_eq!((text.len(), text.ends_with('Z')), (20, true), "{text}");
        let time = chrono::DateTime::parse_from_rfc3339(text).unwrap();
        assert!(time.timestamp() >= before.timestamp(), "{text}");
    }
    let created = certificate["version_created_at"].as_str().unwrap();
    let created = chrono::DateTime::parse_from_rfc3339(created).unwrap();
    assert!(created <= chrono::Utc::now(), "{created}");
}

#[tokio::test]
async fn every_version_has_a_distinct_random_id_in_lower_case() {
    let server = Server::reused().await;
    let mut ids = HashSet::new();
    for number in 0..20 {
        let version = server.set_value(&format!("/{}", number % 3), "same").await;
        let text = given::id(&version);
        let id = Uuid::parse_str(&text).unwrap();
        assert_eq!(text, id.hyphenated().to_string());
        assert_eq!(id.get_version_num(), 4);
        assert!(ids.insert(id), "duplicate id {id}");
    }
}
