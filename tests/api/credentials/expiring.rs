//! Searches for certificates that expire, alone or with their CAs.

use keywright_harness::{Server, Text};
use serde_json::{Value, json};

use crate::{
    certificates::Certificate,
    external_certificates,
    given::{self, generate_certificate},
};

// GET /api/v1/data with expires-within-days

#[tokio::test]
async fn certificates_that_expire_within_the_days_are_found() {
    let server = Server::reused().await;
    for duration_days in [1, 10, 100] {
        generate_for_days(&server, &format!("/path/c{duration_days}"), duration_days).await;
    }
    given::set_value(&server, "/path/value", "v").await;
    given::generate(&server, "/path/password", "password", json!({})).await;
    for (days, expected) in [
        (0, &[][..]),
        (1, &["/path/c1"]),
        (9, &["/path/c1"]),
        (10, &["/path/c1", "/path/c10"]),
        (99, &["/path/c1", "/path/c10"]),
        (100, &["/path/c1", "/path/c10", "/path/c100"]),
        (1_000_000, &["/path/c1", "/path/c10", "/path/c100"]),
        (i64::MAX, &["/path/c1", "/path/c10", "/path/c100"]),
        (-1, &[]),
        (i64::MIN, &[]),
    ] {
        for names in ["path=", "path=/path", "name-like=", "name-like=path/c"] {
            let query = format!("{names}&expires-within-days={days}");
            let mut found = given::found_names(&server, &query).await;
            found.sort();
            assert_eq!(found, expected, "{query}");
        }
    }
    let below = "path=/other&expires-within-days=1000";
    assert!(given::found_names(&server, below).await.is_empty());
    let containing = "name-like=c10&expires-within-days=20";
    assert_eq!(given::found_names(&server, containing).await, ["/path/c10"]);
}

#[tokio::test]
async fn a_damaged_column_is_logged_with_the_command_to_find_its_row() {
    let server = Server::start().await;
    generate_for_days(&server, "/damaged", 10).await;
    server
        .run_sql("update credential_version set expires_at = -9000000000000000000")
        .await;
    let response = server.get("/api/v1/certificates").await;
    response.expect(500);
    let log = server.log();
    log.assert_contains("credential_version.expires_at; run `keywright check`");
}

#[tokio::test]
async fn each_item_has_its_expiry() {
    let server = Server::reused().await;
    let version = generate_for_days(&server, "/c", 10).await;
    let response = server
        .get("/api/v1/data?path=&expires-within-days=30")
        .await
        .expect(200);
    let item = json!({
        "name": "/c",
        "version_created_at": version["version_created_at"],
        "expiry_date": version["expiry_date"],
    });
    assert_eq!(response.json(), json!({"credentials": [item]}));
}

#[tokio::test]
async fn expired_certificates_are_found() {
    let server = Server::reused().await;
    let expired = json!({"certificate": external_certificates::expired_certificate()});
    let version = given::set(&server, "/expired", "certificate", expired).await;
    assert_eq!(version["expiry_date"], "2002-01-01T00:00:00Z");
    for days in [0, 1, -30] {
        let query = format!("path=&expires-within-days={days}");
        assert_eq!(
            given::found_names(&server, &query).await,
            ["/expired"],
            "{days}"
        );
    }
    let long_before = format!("path=&expires-within-days={}", -365 * 100);
    assert!(given::found_names(&server, &long_before).await.is_empty());
}

#[tokio::test]
async fn only_the_expiry_of_the_newest_version_is_compared() {
    let server = Server::reused().await;
    generate_for_days(&server, "/renewed", 5).await;
    let long_lived = json!({
        "name": "/renewed", "type": "certificate", "mode": "overwrite",
        "parameters": {"common_name": "c", "self_sign": true, "duration": 300},
    });
    server.post("/api/v1/data", long_lived).await.expect(200);
    assert!(
        given::found_names(&server, "path=&expires-within-days=30")
            .await
            .is_empty()
    );
    let expired = json!({"certificate": external_certificates::expired_certificate()});
    given::set(&server, "/renewed", "certificate", expired).await;
    let actual = given::found_names(&server, "path=&expires-within-days=30").await;
    assert_eq!(actual, ["/renewed"]);
}

async fn generate_for_days(server: &Server, name: &str, duration_days: u32) -> Value {
    let parameters = json!({"common_name": "c", "self_sign": true, "duration": duration_days});
    given::generate(server, name, "certificate", parameters).await
}

// GET /api/v1/data with expires-within-days and effective

#[tokio::test]
async fn a_leaf_that_outlives_its_ca_expires_with_it() {
    let server = Server::reused().await;
    let root = generate_certificate(&server, "/root", json!({"is_ca": true, "duration": 20})).await;
    let leaf =
        generate_certificate(&server, "/leaf", json!({"ca": "/root", "duration": 300})).await;
    assert!(expiring(&server, "/leaf", "").await.is_empty());
    let item = json!({
        "name": "/leaf",
        "version_created_at": leaf["version_created_at"],
        "expiry_date": root["expiry_date"],
        "expiring_link": {"name": "/root", "version_id": root["id"], "depth": 1},
    });
    assert_eq!(effective(&server, "/leaf").await, [item]);
}

#[tokio::test]
async fn a_newer_transitional_version_does_not_hide_the_active_one() {
    let server = Server::reused().await;
    let active =
        generate_certificate(&server, "/root", json!({"is_ca": true, "duration": 20})).await;
    let root = Certificate::named(&server, "/root").await;
    let body = json!({"set_as_transitional": true, "duration": 300});
    let transitional = root.regenerate(body).await.expect(200).json();
    assert!(expiring(&server, "/root", "").await.is_empty());
    let item = json!({
        "name": "/root",
        "version_created_at": active["version_created_at"],
        "expiry_date": active["expiry_date"],
        "expiring_link": {"name": "/root", "version_id": active["id"], "depth": 0},
    });
    assert_eq!(effective(&server, "/root").await, [item]);
    // The flag moves: the long-lived version is active.
    let to_active = Value::String(given::id(&active));
    root.move_transitional(to_active).await.expect(200);
    assert_ne!(given::id(&transitional), given::id(&active));
    assert!(effective(&server, "/root").await.is_empty());
}

#[tokio::test]
async fn a_leaf_expires_with_the_ca_version_that_signed_it() {
    let server = Server::reused().await;
    let old = generate_certificate(&server, "/root", json!({"is_ca": true, "duration": 20})).await;
    generate_certificate(&server, "/leaf", json!({"ca": "/root", "duration": 300})).await;
    let renewed = json!({"duration": 900});
    let root = Certificate::named(&server, "/root").await;
    root.regenerate(renewed).await.expect(200);
    assert!(effective(&server, "/root").await.is_empty());
    let [item] = &effective(&server, "/leaf").await[..] else {
        panic!("the leaf is not found by the expiry of the old CA version")
    };
    assert_eq!(item["expiring_link"]["version_id"], old["id"]);
    let leaf = Certificate::named(&server, "/leaf").await;
    leaf.regenerate(json!({})).await.expect(200);
    assert!(effective(&server, "/leaf").await.is_empty());
}

#[tokio::test]
async fn the_first_expiring_link_is_returned_at_any_depth() {
    let server = Server::reused().await;
    generate_certificate(&server, "/root", json!({"is_ca": true, "duration": 30})).await;
    let intermediate = json!({"is_ca": true, "ca": "/root", "duration": 300});
    generate_certificate(&server, "/intermediate", intermediate).await;
    let leaf = json!({"ca": "/intermediate", "duration": 200});
    generate_certificate(&server, "/path/leaf", leaf).await;
    let short = json!({"ca": "/intermediate", "duration": 5});
    generate_certificate(&server, "/path/short", short).await;
    let found: Vec<(String, String, u64)> = effective(&server, "/")
        .await
        .iter()
        .map(|item| {
            let link = &item["expiring_link"];
            let name = |item: &Value| item["name"].as_str().unwrap().to_owned();
            (name(item), name(link), link["depth"].as_u64().unwrap())
        })
        .collect();
    // The order is by expiry, then by distance to the expiring link.
    let expected = [
        ("/path/short", "/path/short", 0),
        ("/root", "/root", 0),
        ("/intermediate", "/root", 1),
        ("/path/leaf", "/root", 2),
    ];
    let expected = expected.map(|(name, link, depth)| (name.to_owned(), link.to_owned(), depth));
    assert_eq!(found, expected);
    for (query, names) in [
        ("path=/path", &["/path/short", "/path/leaf"][..]),
        ("name-like=LEA", &["/path/leaf"]),
        ("name-like=r", &["/path/short", "/root", "/intermediate"]),
        (
            "name-like=",
            &["/path/short", "/root", "/intermediate", "/path/leaf"],
        ),
        ("path=/elsewhere", &[]),
        ("name-like=%20", &[]),
    ] {
        let query = format!("{query}&expires-within-days=60&effective=true");
        assert_eq!(given::found_names(&server, &query).await, names, "{query}");
    }
    for (days, count) in [(4, 0), (5, 1), (29, 1), (30, 4), (-1, 0), (i64::MAX, 4)] {
        let query = format!("path=&expires-within-days={days}&effective=true");
        assert_eq!(
            given::found_names(&server, &query).await.len(),
            count,
            "{days}"
        );
    }
}

#[tokio::test]
async fn after_a_bulk_regeneration_leaves_expire_with_the_new_cas() {
    let server = Server::reused().await;
    generate_certificate(&server, "/root", json!({"is_ca": true, "duration": 900})).await;
    let intermediate = json!({"is_ca": true, "ca": "/root", "duration": 20});
    generate_certificate(&server, "/intermediate", intermediate).await;
    let leaf = json!({"ca": "/intermediate", "duration": 300});
    generate_certificate(&server, "/leaf", leaf).await;
    server.bulk_regenerate("/root").await.expect(200);
    let intermediate = given::newest(&server, "/intermediate").await;
    let link = json!({"name": "/intermediate", "version_id": intermediate["id"], "depth": 1});
    assert_eq!(effective(&server, "/leaf").await[0]["expiring_link"], link);
}

#[tokio::test]
async fn a_leaf_expires_with_a_deleted_or_never_stored_issuer() {
    let server = Server::reused().await;
    let root = generate_certificate(&server, "/root", json!({"is_ca": true, "duration": 20})).await;
    let leaf =
        generate_certificate(&server, "/leaf", json!({"ca": "/root", "duration": 300})).await;
    let named = json!({"certificate": leaf["value"]["certificate"], "ca_name": "/root"});
    given::set(&server, "/set/named", "certificate", named).await;
    let elsewhere = json!({
        "certificate": leaf["value"]["certificate"],
        "ca": root["value"]["certificate"],
    });
    given::set(&server, "/set/elsewhere", "certificate", elsewhere).await;
    server.delete("/api/v1/data?name=/root").await.expect(204);
    for (name, link) in [
        (
            "/leaf",
            json!({"name": "/root", "version_id": null, "depth": 1}),
        ),
        (
            "/set/named",
            json!({"name": "/root", "version_id": null, "depth": 1}),
        ),
        (
            "/set/elsewhere",
            json!({"name": null, "version_id": null, "depth": 1}),
        ),
    ] {
        let found = effective(&server, name).await;
        assert_eq!(found[0]["expiring_link"], link, "{name}");
        assert_eq!(found[0]["expiry_date"], root["expiry_date"], "{name}");
        assert_eq!(found.len(), 1);
    }
}

#[tokio::test]
async fn certificates_without_an_active_version_are_omitted() {
    let server = Server::reused().await;
    generate_certificate(&server, "/only", json!({"self_sign": true, "duration": 5})).await;
    given::set_value(&server, "/value", "v").await;
    let only = Certificate::named(&server, "/only").await;
    only.move_transitional(json!("latest")).await.expect(200);
    let all = "path=&expires-within-days=60&effective=true";
    assert!(given::found_names(&server, all).await.is_empty());
    let by_newest = "path=&expires-within-days=60&effective=false";
    assert_eq!(given::found_names(&server, by_newest).await, ["/only"]);
}

#[tokio::test]
async fn effective_must_be_a_boolean_and_needs_expires_within_days() {
    let server = Server::reused().await;
    for (query, named) in [
        ("path=&effective=true", "expires-within-days"),
        ("path=&expires-within-days=1&effective=maybe", "effective"),
        (
            "path=&expires-within-days=1&effective=true&effective=true",
            "effective",
        ),
    ] {
        let response = server.get(&format!("/api/v1/data?{query}")).await;
        let response = response.expect(400).json();
        let error = response["error"].as_str().unwrap();
        assert!(error.contains(named), "{query}: {error}");
    }
    let response = server.get("/api/v1/data?path=&effective=false").await;
    response.expect(200);
}

/// Finds certificates with this text in their names and a chain that expires within 60 days.
async fn effective(server: &Server, part: &str) -> Vec<Value> {
    expiring(server, part, "&effective=true").await
}

async fn expiring(server: &Server, part: &str, more: &str) -> Vec<Value> {
    let query = format!("/api/v1/data?name-like={part}&expires-within-days=60{more}");
    let response = server.get_json(&query).await;
    response["credentials"].as_array().unwrap().clone()
}
