//! Searches for certificates that expire, alone or with their CAs.

use keywright_harness::{Server, Text};
use serde_json::{Value, json};

use crate::{certificates::Certificate, external_certificates, given};

// GET /api/v1/data with expires-within-days

#[tokio::test]
async fn certificates_that_expire_within_the_days_are_found() {
    let server = Server::reused().await;
    for duration_days in [1, 10, 100] {
        generate_for_days(&server, &format!("/path/c{duration_days}"), duration_days).await;
    }
    server.set_value("/path/value", "v").await;
    server.generated("/path/p", "password", json!({})).await;
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
            let mut found = server.found_names(&query).await;
            found.sort();
            assert_eq!(found, expected, "{query}");
        }
    }
    let below = "path=/other&expires-within-days=1000";
    assert!(server.found_names(below).await.is_empty());
    let containing = "name-like=c10&expires-within-days=20";
    assert_eq!(server.found_names(containing).await, ["/path/c10"]);
}

#[tokio::test]
async fn a_damaged_column_is_logged_with_the_command_to_find_its_row() {
    let server = Server::start().await;
    generate_for_days(&server, "/damaged", 10).await;
    let sql = "update credential_version set expires_at = -9000000000000000000";
    server.run_sql(sql).await;
    let response = server.get("/api/v1/certificates").await;
    response.expect(500);
    let log = server.log();
    log.assert_contains("credential_version.expires_at; run `keywright check`");
}

#[tokio::test]
async fn each_item_has_its_expiry() {
    let server = Server::reused().await;
    let version = generate_for_days(&server, "/c", 10).await;
    let found = server.get_json("/api/v1/data?path=&expires-within-days=30");
    let (created, expiry) = (&version["version_created_at"], &version["expiry_date"]);
    let item = json!({"name": "/c", "version_created_at": created, "expiry_date": expiry});
    assert_eq!(found.await, json!({"credentials": [item]}));
}

#[tokio::test]
async fn expired_certificates_are_found() {
    let server = Server::reused().await;
    let expired = json!({"certificate": external_certificates::expired_certificate()});
    let version = server.stored("/expired", "certificate", expired).await;
    assert_eq!(version["expiry_date"], "2002-01-01T00:00:00Z");
    for days in [0, 1, -30] {
        let query = format!("path=&expires-within-days={days}");
        assert_eq!(server.found_names(&query).await, ["/expired"], "{days}");
    }
    let long_before = format!("path=&expires-within-days={}", -365 * 100);
    assert!(server.found_names(&long_before).await.is_empty());
}

#[tokio::test]
async fn only_the_expiry_of_the_newest_version_is_compared() {
    let server = Server::reused().await;
    generate_for_days(&server, "/renewed", 5).await;
    generate_for_days(&server, "/renewed", 300).await;
    let query = "path=&expires-within-days=30";
    assert!(server.found_names(query).await.is_empty());
    let expired = json!({"certificate": external_certificates::expired_certificate()});
    server.stored("/renewed", "certificate", expired).await;
    assert_eq!(server.found_names(query).await, ["/renewed"]);
}

async fn generate_for_days(server: &Server, name: &str, duration_days: u32) -> Value {
    let parameters = json!({"self_sign": true, "duration": duration_days});
    server.issued(name, parameters).await
}

// GET /api/v1/data with expires-within-days and effective

/// Generates the CA `/root` for 20 days, and the leaf `/leaf` for 300.
async fn root_and_leaf(server: &Server) -> [Value; 2] {
    let root = json!({"is_ca": true, "duration": 20});
    let root = server.issued("/root", root).await;
    let leaf = json!({"ca": "/root", "duration": 300});
    [root, server.issued("/leaf", leaf).await]
}

/// Returns the expected item for a version whose chain first expires at this link.
fn item(version: &Value, link: &Value, depth: u64) -> Value {
    json!({
        "name": version["name"], "version_created_at": version["version_created_at"], "expiry_date": link["expiry_date"],
        "expiring_link": {"name": link["name"], "version_id": link["id"], "depth": depth},
    })
}

#[tokio::test]
async fn a_leaf_that_outlives_its_ca_expires_with_it() {
    let server = Server::reused().await;
    let [root, leaf] = root_and_leaf(&server).await;
    assert!(expiring(&server, "/leaf", "").await.is_empty());
    assert_eq!(effective(&server, "/leaf").await, [item(&leaf, &root, 1)]);
}

#[tokio::test]
async fn a_newer_transitional_version_does_not_hide_the_active_one() {
    let server = Server::reused().await;
    let [active, _] = root_and_leaf(&server).await;
    let root = Certificate::named(&server, "/root").await;
    let body = json!({"set_as_transitional": true, "duration": 300});
    let transitional = root.regenerate(body).await.expect(200).json();
    assert!(expiring(&server, "/root", "").await.is_empty());
    let found = effective(&server, "/root").await;
    assert_eq!(found, [item(&active, &active, 0)]);
    // The flag moves: the long-lived version is active.
    let to_active = Value::String(given::id(&active));
    root.move_transitional(to_active).await.expect(200);
    assert_ne!(given::id(&transitional), given::id(&active));
    assert!(effective(&server, "/root").await.is_empty());
}

#[tokio::test]
async fn a_leaf_expires_with_the_ca_version_that_signed_it() {
    let server = Server::reused().await;
    let [old, _] = root_and_leaf(&server).await;
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
    let parameters = json!({"is_ca": true, "duration": 30});
    server.issued("/root", parameters).await;
    let intermediate = json!({"is_ca": true, "ca": "/root", "duration": 300});
    server.issued("/intermediate", intermediate).await;
    let leaf = json!({"ca": "/intermediate", "duration": 200});
    server.issued("/path/leaf", leaf).await;
    let short = json!({"ca": "/intermediate", "duration": 5});
    server.issued("/path/short", short).await;
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
    let texts = expected.map(|(name, link, depth)| (name.to_owned(), link.to_owned(), depth));
    assert_eq!(found, texts);
    for (query, names) in [
        ("path=/path", &["/path/short", "/path/leaf"][..]),
        ("name-like=LEA", &["/path/leaf"]),
        ("name-like=r", &["/path/short", "/root", "/intermediate"]),
        ("name-like=", &expected.map(|(name, ..)| name)),
        ("path=/elsewhere", &[]),
        ("name-like=%20", &[]),
    ] {
        let query = format!("{query}&expires-within-days=60&effective=true");
        assert_eq!(server.found_names(&query).await, names, "{query}");
    }
    for (days, count) in [(4, 0), (5, 1), (29, 1), (30, 4), (-1, 0), (i64::MAX, 4)] {
        let query = format!("path=&expires-within-days={days}&effective=true");
        assert_eq!(server.found_names(&query).await.len(), count, "{days}");
    }
}

#[tokio::test]
async fn after_a_bulk_regeneration_leaves_expire_with_the_new_cas() {
    let server = Server::reused().await;
    let parameters = json!({"is_ca": true, "duration": 900});
    server.issued("/root", parameters).await;
    let intermediate = json!({"is_ca": true, "ca": "/root", "duration": 20});
    server.issued("/intermediate", intermediate).await;
    let leaf = json!({"ca": "/intermediate", "duration": 300});
    server.issued("/leaf", leaf).await;
    server.bulk_regenerate("/root").await.expect(200);
    let intermediate = server.newest("/intermediate").await;
    let link = json!({"name": "/intermediate", "version_id": intermediate["id"], "depth": 1});
    assert_eq!(effective(&server, "/leaf").await[0]["expiring_link"], link);
}

#[tokio::test]
async fn a_leaf_expires_with_a_deleted_or_never_stored_issuer() {
    let server = Server::reused().await;
    let [root, leaf] = root_and_leaf(&server).await;
    let certificate = &leaf["value"]["certificate"];
    let named = json!({"certificate": certificate, "ca_name": "/root"});
    server.stored("/set/named", "certificate", named).await;
    let by_value = json!({"certificate": certificate, "ca": root["value"]["certificate"]});
    server.stored("/set/ca", "certificate", by_value).await;
    server.delete("/api/v1/data?name=/root").await.expect(204);
    for (name, ca) in [
        ("/leaf", Some("/root")),
        ("/set/named", Some("/root")),
        ("/set/ca", None),
    ] {
        let link = json!({"name": ca, "version_id": null, "depth": 1});
        let found = effective(&server, name).await;
        assert_eq!(found[0]["expiring_link"], link, "{name}");
        assert_eq!(found[0]["expiry_date"], root["expiry_date"], "{name}");
        assert_eq!(found.len(), 1);
    }
}

#[tokio::test]
async fn certificates_without_an_active_version_are_omitted() {
    let server = Server::reused().await;
    let parameters = json!({"self_sign": true, "duration": 5});
    server.issued("/only", parameters).await;
    server.set_value("/value", "v").await;
    let only = Certificate::named(&server, "/only").await;
    only.move_transitional(json!("latest")).await.expect(200);
    let all = "path=&expires-within-days=60&effective=true";
    assert!(server.found_names(all).await.is_empty());
    let by_newest = "path=&expires-within-days=60&effective=false";
    assert_eq!(server.found_names(by_newest).await, ["/only"]);
}

#[tokio::test]
async fn effective_must_be_a_boolean_and_needs_expires_within_days() {
    let server = Server::reused().await;
    let table = "
        400 GET /api/v1/data?path=&effective=true => expires-within-days
        400 GET /api/v1/data?path=&expires-within-days=1&effective=maybe => effective
        400 GET /api/v1/data?path=&expires-within-days=1&effective=true&effective=true => effective
    ";
    given::assert_refused(&server, table).await;
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
