//! Lists of certificates and of their versions, and searches.

use keywright_harness::Server;
use serde_json::{Value, json};

use super::{CERTIFICATES, Certificate, ids, summary};
use crate::{
    external_certificates::{Signing, authority, self_signed_leaf},
    given,
};

// `GET /api/v1/certificates`.

async fn all(server: &Server) -> Vec<Value> {
    let response = server.get_json(CERTIFICATES).await;
    assert_eq!(given::fields(&response), ["certificates"]);
    response["certificates"].as_array().unwrap().clone()
}

#[tokio::test]
async fn a_summary_lists_the_versions_newest_first_with_their_fields() {
    let server = Server::reused().await;
    let root = Certificate::generate_root(&server, "/Root").await;
    let body = json!({"set_as_transitional": true});
    root.regenerate(body).await.expect(200);
    let listed = summary(&server, "/Root").await;
    let actual = given::fields(&listed);
    assert_eq!(actual, ["name", "id", "versions", "signed_by", "signs"]);
    assert_eq!(listed["name"], "/Root");
    let versions = root.versions().await;
    assert_eq!(ids(listed["versions"].as_array().unwrap()), ids(&versions));
    for (listed, version) in listed["versions"].as_array().unwrap().iter().zip(versions) {
        let marks = [
            "id",
            "expiry_date",
            "transitional",
            "certificate_authority",
            "self_signed",
            "generated",
        ];
        assert_eq!(given::fields(listed), marks);
        for mark in marks {
            assert_eq!(listed[mark], version[mark], "{mark}");
        }
    }
    assert_eq!(all(&server).await, [listed]);
}

#[tokio::test]
async fn a_name_is_found_in_any_casing_with_or_without_its_slash() {
    let server = Server::reused().await;
    Certificate::set(
        &server,
        "/a/Root",
        json!({"ca": authority("x").certificate}),
    )
    .await;
    let expected = summary(&server, "/a/Root").await;
    for name in ["a/Root", "/A/ROOT", "%2Fa%2Froot"] {
        assert_eq!(summary(&server, name).await, expected, "{name}");
    }
    let response = server.get("/api/v1/certificates/?name=/a/root").await;
    let slashed = response.expect(200);
    assert_eq!(slashed.json()["certificates"], json!([expected]));
}

#[tokio::test]
async fn a_name_not_found_is_404_and_an_empty_or_repeated_one_400() {
    let server = Server::reused().await;
    server.set_value("/v", "text").await;
    for name in ["/v", "/absent", "/a%20b", "/"] {
        let response = server.get(&format!("{CERTIFICATES}?name={name}")).await;
        response.expect(404).error();
    }
    for query in ["name=", "name", "name=/a&name=/a"] {
        let response = server.get(&format!("{CERTIFICATES}?{query}")).await;
        response.expect_error(400, "name");
    }
}

#[tokio::test]
async fn certificates_are_ordered_by_their_newest_versions() {
    let server = Server::reused().await;
    assert_eq!(all(&server).await, [] as [Value; 0]);
    let value = json!({"certificate": authority("x").certificate});
    for name in ["/b", "/a", "/c", "/b"] {
        Certificate::set(&server, name, value.clone()).await;
    }
    server.set_value("/v", "text").await;
    assert_eq!(given::names(&all(&server).await), ["/b", "/c", "/a"]);
    let transitional = json!({"value": value, "transitional": true});
    let a = Certificate::named(&server, "/a").await;
    a.add_version(transitional).await.expect(200);
    assert_eq!(given::names(&all(&server).await), ["/a", "/b", "/c"]);
    let slashed = server.get("/api/v1/certificates/").await.expect(200);
    assert_eq!(slashed.body, server.get(CERTIFICATES).await.body);
    server.delete("/api/v1/data?name=/b").await.expect(204);
    assert_eq!(given::names(&all(&server).await), ["/a", "/c"]);
}

#[tokio::test]
async fn signed_by_is_the_name_of_a_known_signer() {
    let server = Server::reused().await;
    let root = authority("root");
    let leaf = root.sign_leaf("leaf");
    Certificate::set(&server, "/Root", root.value()).await;
    let by_name = json!({"ca_name": "/ROOT", "certificate": leaf.certificate});
    Certificate::set(&server, "/set-by-name", by_name).await;
    let by_value = json!({"ca": root.certificate, "certificate": leaf.certificate});
    Certificate::set(&server, "/set-by-value", by_value.clone()).await;
    let leaf = json!({"ca": "root"});
    Certificate::generate(&server, "/generated", leaf).await;
    let own = json!({"self_sign": true});
    Certificate::generate(&server, "/own", own).await;
    Certificate::set(&server, "/lone", self_signed_leaf("lone").public()).await;
    for (name, signer) in [
        ("/Root", "/Root"),
        ("/set-by-name", "/Root"),
        ("/set-by-value", ""),
        ("/generated", "/Root"),
        ("/own", "/own"),
        // Only set CAs are flagged as self-signed.
        ("/lone", ""),
    ] {
        assert_eq!(summary(&server, name).await["signed_by"], signer, "{name}");
    }
    // The newest version determines the signer.
    Certificate::set(&server, "/own", by_value).await;
    assert_eq!(summary(&server, "/own").await["signed_by"], "");
    // The name remains after the CA is deleted.
    server.delete("/api/v1/data?name=/root").await.expect(204);
    assert_eq!(summary(&server, "/generated").await["signed_by"], "/Root");
}

#[tokio::test]
async fn the_signs_field_covers_older_versions_only_in_lists_by_name() {
    let server = Server::reused().await;
    let first = authority("first");
    let second = authority("second");
    for (name, root) in [("/first", &first), ("/second", &second)] {
        Certificate::set(&server, name, root.public()).await;
    }
    for (name, ca_name, root) in [
        ("/b", "/first", &first),
        ("/b", "/first", &first),
        ("/A", "/FIRST", &first),
        ("/b", "/second", &second),
        ("/c", "/second", &second),
    ] {
        let leaf = root.sign_leaf("leaf");
        let value = json!({"ca_name": ca_name, "certificate": leaf.certificate});
        Certificate::set(&server, name, value).await;
    }
    for (name, among_all, alone) in [
        ("/first", json!(["/A"]), json!(["/A", "/b"])),
        ("/second", json!(["/b", "/c"]), json!(["/b", "/c"])),
        ("/b", json!([]), json!([])),
    ] {
        let all = all(&server).await;
        let listed = all.iter().find(|summary| summary["name"] == name).unwrap();
        assert_eq!(listed["signs"], among_all, "{name}");
        assert_eq!(summary(&server, name).await["signs"], alone, "{name}");
    }
}

#[tokio::test]
async fn an_unknown_expiry_is_empty_and_an_unknown_origin_omitted() {
    let server = Server::reused().await;
    let root = authority("root");
    let value = json!({"private_key": root.private_key});
    let certificate = Certificate::set(&server, "/a", value).await;
    let version = summary(&server, "/a").await["versions"][0].clone();
    assert_eq!(version["expiry_date"], "");
    assert_eq!(version["generated"], false);
    assert_eq!(version["certificate_authority"], false);

    let added = json!({"value": {"certificate": root.certificate}});
    certificate.add_version(added).await.expect(200);
    let version = summary(&server, "/a").await["versions"][0].clone();
    assert_eq!(version.get("generated"), None);
    assert_eq!(version["certificate_authority"], true);
    assert_eq!(version["self_signed"], true);
}

// `GET /api/v1/certificates/{certificate_id}/versions`.

#[tokio::test]
async fn all_versions_listed_by_id_equal_the_versions_read_by_name() {
    let server = Server::reused().await;
    let root = Certificate::generate_root(&server, "/a").await;
    let body = json!({"set_as_transitional": true, "metadata": {"a": 1}});
    root.regenerate(body).await.expect(200);
    root.regenerate(json!({})).await.expect(200);
    let versions = root.versions().await;
    assert_eq!(versions.len(), 3);
    assert_eq!(versions, server.versions("/a").await);
    for query in [
        "?current=false",
        "?current=FALSE",
        "?current=",
        "?unknown=1",
    ] {
        assert_eq!(root.versions_where(query).await, versions, "{query}");
    }
}

#[tokio::test]
async fn current_returns_the_active_and_then_the_transitional_version() {
    let server = Server::reused().await;
    let root = Certificate::generate_root(&server, "/a").await;
    let body = json!({"set_as_transitional": true});
    root.regenerate(body).await.expect(200);
    let [transitional, first] = ids(&root.versions().await).try_into().unwrap();
    let actual = ids(&root.current().await);
    assert_eq!(actual, [first.clone(), transitional.clone()]);

    let newest = given::id(&root.regenerate(json!({})).await.expect(200).json());
    assert_eq!(ids(&root.current().await), [newest.clone(), transitional]);
    let response = server.get("/api/v1/data?name=/a&current=true").await;
    assert_eq!(root.current().await, given::versions_in(&response));

    root.move_transitional(Value::Null).await.expect(200);
    assert_eq!(ids(&root.current().await), std::slice::from_ref(&newest));
    root.move_transitional(json!(first)).await.expect(200);
    assert_eq!(ids(&root.current().await), [newest, first]);
}

#[tokio::test]
async fn current_returns_a_lone_transitional_version() {
    let server = Server::reused().await;
    let parameters = json!({"common_name": "a", "is_ca": true, "key_type": "ecdsa-p256"});
    let root = Certificate::generate(&server, "/a", parameters).await;
    root.move_transitional(json!("latest")).await.expect(200);
    let only = root.versions().await;
    assert_eq!(only[0]["transitional"], true);
    assert_eq!(root.current().await, only);
    let response = server.get("/api/v1/data?name=/a&current=true").await;
    assert_eq!(given::versions_in(&response.expect(200)), only);
}

#[tokio::test]
async fn an_invalid_current_is_400() {
    let server = Server::reused().await;
    let root = Certificate::generate_root(&server, "/a").await;
    for query in ["current=maybe", "current=2", "current=true&current=true"] {
        let response = server.get(&root.path(&format!("versions?{query}"))).await;
        response.expect_error(400, "current");
    }
}

// Searches for certificates with transitional versions.

/// Searches that find all credentials.
const SEARCHES: [&str; 2] = ["path=", "name-like="];

#[tokio::test]
async fn a_certificate_with_only_a_transitional_version_is_not_found() {
    let server = Server::reused().await;
    let value = json!({"certificate": authority("root").certificate});
    let certificate = Certificate::set(&server, "/a", value.clone()).await;
    for (flag, found) in [
        (json!("latest"), vec![]),
        (Value::Null, vec!["/a"]),
        (json!("latest"), vec![]),
    ] {
        let response = certificate.move_transitional(flag.clone()).await;
        response.expect(200);
        for search in SEARCHES {
            assert_eq!(server.found_names(search).await, found, "{search} {flag}");
        }
    }
    assert_eq!(certificate.current().await.len(), 1);
    let response = certificate.add_version(json!({"value": value})).await;
    response.expect(200);
    for search in SEARCHES {
        assert_eq!(server.found_names(search).await, ["/a"], "{search}");
    }
}

#[tokio::test]
async fn after_deleting_active_versions_a_certificate_is_not_found() {
    let server = Server::reused().await;
    let value = json!({"certificate": authority("root").certificate});
    let certificate = Certificate::set(&server, "/a", value.clone()).await;
    let body = json!({"value": value, "transitional": true});
    certificate.add_version(body).await.expect(200);
    let first = ids(&certificate.versions().await)[1].clone();
    certificate.delete_version(&first).await.expect(200);
    for search in SEARCHES {
        assert!(server.found_names(search).await.is_empty(), "{search}");
    }
}

#[tokio::test]
async fn certificates_are_found_in_the_order_of_active_versions() {
    let server = Server::reused().await;
    let value = json!({"certificate": authority("root").certificate});
    let a = Certificate::set(&server, "/a", value.clone()).await;
    Certificate::set(&server, "/b", value.clone()).await;
    let newest = json!({"value": value});
    let newest = a.add_version(newest).await.expect(200).json();
    assert_eq!(server.found_names("path=").await, ["/a", "/b"]);
    a.move_transitional(newest["id"].clone()).await.expect(200);
    assert_eq!(server.found_names("path=").await, ["/b", "/a"]);
    a.move_transitional(Value::Null).await.expect(200);
    assert_eq!(server.found_names("path=").await, ["/a", "/b"]);
    a.delete_version(&given::id(&newest)).await.expect(200);
    assert_eq!(server.found_names("path=").await, ["/b", "/a"]);
}

#[tokio::test]
async fn expiry_searches_use_the_newest_version_of_any_kind() {
    let server = Server::reused().await;
    let parameters = json!({"self_sign": true, "duration": 400});
    let certificate = Certificate::generate(&server, "/a", parameters).await;
    let soon = "path=&expires-within-days=20";
    assert!(server.found_names(soon).await.is_empty());
    let body = json!({"set_as_transitional": true, "duration": 10});
    let newest = certificate.regenerate(body).await.expect(200).json();
    assert_eq!(server.found_names(soon).await, ["/a"]);
    // Otherwise, both versions may be from the same second.
    let sql = "update credential set current_created_at = 0";
    server.run_sql(sql).await;
    for (search, created) in [
        ("path=", "1970-01-01T00:00:00Z"),
        (soon, newest["version_created_at"].as_str().unwrap()),
    ] {
        let found = server.get_json(&format!("/api/v1/data?{search}")).await;
        let actual = &found["credentials"][0]["version_created_at"];
        assert_eq!(actual, created, "{search}");
    }
    let response = certificate.delete_version(&given::id(&newest)).await;
    response.expect(200);
    assert!(server.found_names(soon).await.is_empty());
}
