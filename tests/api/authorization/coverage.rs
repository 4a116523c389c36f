//! The names, ids and list entries that a permission covers.

use keywright_harness::{Caller, ReusedServer, Server};
use serde_json::{Value, json};

use crate::given;

// Permissions are independent of credentials. Their paths are case-sensitive, unlike the names of credentials.

#[tokio::test]
async fn creating_a_credential_grants_no_permission() {
    let (server, writer) = server_with(&[("/made/*", &["write"])]).await;
    let body = json!({"name": "/made/it", "type": "password"});
    let made = writer.post("/api/v1/data", body).await.expect(200).json();
    for target in [
        "/api/v1/data?name=/made/it".to_owned(),
        format!("/api/v1/data/{}", given::id(&made)),
    ] {
        writer.get(&target).await.expect(404);
    }
    let found = writer.get("/api/v1/data?path=").await.expect(200);
    assert_eq!(found.json(), json!({"credentials": []}));
    let response = writer.delete("/api/v1/data?name=/made/it").await;
    response.expect(404);
    assert_eq!(server.versions("/made/it").await, [made]);
    let listed = server.get("/api/v1/permissions?credential_name=/made/it");
    assert_eq!(listed.await.expect(200).json()["permissions"], json!([]));
}

#[tokio::test]
async fn requests_by_name_need_permission_on_given_and_stored_casing() {
    let operations: &[&str] = &["read", "write", "delete"];
    let permissions = [
        ("/Folder/It", operations),
        ("/folder/it", operations),
        ("/Only/*", operations),
    ];
    let (server, caller) = server_with(&permissions).await;
    server.set_value("/folder/it", "v").await;
    let named = |name| format!("/api/v1/data?name={name}");
    caller.get(&named("/Folder/It")).await.expect(200);
    caller.get(&named("/folder/it")).await.expect(200);
    let stored = server.set_value("/only/it", "v").await;
    for other in ["/Folder/it", "/FOLDER/IT", "/Only/it", "/only/it"] {
        caller.get(&named(other)).await.expect(404);
        caller.delete(&named(other)).await.expect(404);
        let body = json!({"name": other, "type": "value", "value": "v"});
        caller.put("/api/v1/data", body).await.expect(403);
    }
    let by_id = format!("/api/v1/data/{}", given::id(&stored));
    caller.get(&by_id).await.expect(404);
    for search in ["path=/Only", "name-like=only"] {
        let response = caller.get(&format!("/api/v1/data?{search}")).await;
        let found = response.expect(200);
        assert_eq!(found.json(), json!({"credentials": []}), "{search}");
    }
    let body = json!({"name": "/Folder/It", "type": "value", "value": "w"});
    caller.put("/api/v1/data", body).await.expect(200);
    assert_eq!(server.newest("/folder/it").await["value"], "w");
    caller.delete(&named("/Folder/It")).await.expect(204);
}

async fn server_with(permissions: &[(&str, &[&str])]) -> (ReusedServer, Caller) {
    let server = Server::reused().await;
    let caller = server.as_client("caller").await;
    for (path, operations) in permissions {
        server.grant(path, caller.actor(), operations).await;
    }
    (server, caller)
}

// Lists contain and disclose only readable credentials.

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
async fn the_signs_field_of_a_list_has_only_listed_certificates() {
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
async fn the_signs_field_of_a_single_certificate_is_complete() {
    let (_server, reader) = server_with_chain(&["/ca"]).await;
    let one = reader.get("/api/v1/certificates?name=/ca").await;
    let one = one.expect(200).json();
    assert_eq!(
        one["certificates"][0]["signs"],
        json!(["/a/nested", "/hidden/other"])
    );
}

#[tokio::test]
async fn an_unreadable_expiring_link_has_no_name_or_version() {
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

/// Starts a server with a chain of certificates. `/ca` expires first. It signed `/a/nested` and `/hidden/other`;
/// `/a/nested` signed `/a/b/leaf`, the newest certificate. The returned client may read `paths`.
async fn server_with_chain(paths: &[&str]) -> (ReusedServer, Caller) {
    let permissions: Vec<_> = paths.iter().map(|path| (*path, &["read"][..])).collect();
    let (server, reader) = server_with(&permissions).await;
    for (name, parameters) in [
        ("/ca", json!({"is_ca": true, "duration": 20})),
        (
            "/a/nested",
            json!({"is_ca": true, "ca": "/ca", "duration": 300}),
        ),
        ("/hidden/other", json!({"ca": "/ca", "duration": 300})),
        ("/a/b/leaf", json!({"ca": "/a/nested", "duration": 300})),
    ] {
        server.issued(name, parameters).await;
    }
    (server, reader)
}

/// Returns the names in a list, in its order.
async fn listed(reader: &Caller, target: &str, field: &str) -> Vec<String> {
    let list = reader.get(target).await.expect(200).json();
    let items = list[field].as_array().unwrap();
    let names = items.iter().map(|item| item["name"].as_str().unwrap());
    names.map(str::to_owned).collect()
}
