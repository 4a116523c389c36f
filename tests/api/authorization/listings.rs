//! Lists contain and disclose only readable credentials.

#![expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a test ends when what it needs is not there"
)]

use keywright_harness::{Caller, Options, Server};
use serde_json::{Value, json};

use super::grants::permission;
use crate::given::generate_certificate;

#[tokio::test]
async fn a_credential_with_several_permissions_is_listed_once() {
    let covering = ["/*", "/a/*", "/a/b/*", "/a/b/leaf"];
    let (_server, reader) = server_with_chain(&covering).await;
    for search in [
        "path=/a",
        "name-like=leaf",
        "path=&expires-within-days=3650",
        "path=&expires-within-days=3650&effective=true",
    ] {
        let names = listed(&reader, &format!("/api/v1/data?{search}"), "credentials").await;
        let leaves = names.iter().filter(|name| *name == "/a/b/leaf").count();
        assert_eq!(leaves, 1, "{search}: {names:?}");
    }
    let names = listed(&reader, "/api/v1/certificates", "certificates").await;
    assert_eq!(names, ["/a/b/leaf", "/hidden/other", "/a/nested", "/ca"]);
}

#[tokio::test]
async fn searches_list_readable_credentials_in_the_usual_order() {
    let (_server, reader) = server_with_chain(&["/a/*", "/ca"]).await;
    for (search, expected) in [
        ("path=", &["/a/b/leaf", "/a/nested", "/ca"][..]),
        ("path=/a/b", &["/a/b/leaf"]),
        ("path=/hidden", &[]),
        ("name-like=n", &["/a/nested"]),
        ("name-like=other", &[]),
    ] {
        let names = listed(&reader, &format!("/api/v1/data?{search}"), "credentials").await;
        assert_eq!(names, expected, "{search}");
    }
}

#[tokio::test]
async fn signs_in_the_full_list_names_only_listed_certificates() {
    let (_server, reader) = server_with_chain(&["/ca", "/a/b/*"]).await;
    let all = reader.get("/api/v1/certificates").await.expect(200).json();
    let reported: Vec<_> = all["certificates"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| (one["name"].clone(), one["signs"].clone()))
        .collect();
    // `/ca` signed `/a/nested` and `/hidden/other`, too.
    assert_eq!(
        reported,
        [(json!("/a/b/leaf"), json!([])), (json!("/ca"), json!([])),]
    );
}

#[tokio::test]
async fn signs_of_one_named_certificate_is_complete() {
    let (_server, reader) = server_with_chain(&["/ca"]).await;
    let one = reader.get("/api/v1/certificates?name=/ca").await;
    let one = one.expect(200).json();
    assert_eq!(
        one["certificates"][0]["signs"],
        json!(["/a/nested", "/hidden/other"])
    );
}

#[tokio::test]
async fn the_link_of_a_chain_that_may_not_be_read_has_no_name() {
    let (_server, reader) = server_with_chain(&["/a/b/*"]).await;
    let target = "/api/v1/data?path=&expires-within-days=30&effective=true";
    let found = reader.get(target).await.expect(200).json();
    let items = found["credentials"].as_array().unwrap();
    assert_eq!(items.len(), 1, "{items:?}");
    assert_eq!(items[0]["name"], "/a/b/leaf");
    let link = &items[0]["expiring_link"];
    assert_eq!(
        *link,
        json!({"name": Value::Null, "version_id": Value::Null, "depth": 2})
    );
}

/// A server with a chain of certificates, which expires with `/ca`: `/ca` signed `/a/nested` and `/hidden/other`, and
/// `/a/nested` signed `/a/b/leaf`, the newest. The client may read these paths.
async fn server_with_chain(paths: &[&str]) -> (Server, Caller) {
    let actor = ["uaa-client:reader".to_owned()];
    let sections: String = paths
        .iter()
        .map(|path| permission(path, &actor, &["read"]))
        .collect();
    let server = Server::start_with(&Options::default().extra(&sections)).await;
    for (name, parameters) in [
        ("/ca", json!({"is_ca": true, "duration": 20})),
        (
            "/a/nested",
            json!({"is_ca": true, "ca": "/ca", "duration": 300}),
        ),
        ("/hidden/other", json!({"ca": "/ca", "duration": 300})),
        ("/a/b/leaf", json!({"ca": "/a/nested", "duration": 300})),
    ] {
        generate_certificate(&server, name, parameters).await;
    }
    let reader = server.as_client("reader").await;
    (server, reader)
}

/// The names in a list, in its order.
async fn listed(reader: &Caller, target: &str, member: &str) -> Vec<String> {
    let list = reader.get(target).await.expect(200).json();
    let items = list[member].as_array().unwrap();
    let names = items.iter().map(|item| item["name"].as_str().unwrap());
    names.map(str::to_owned).collect()
}
