//! Permissions are independent of credentials, and case-sensitive unlike them.

use keywright_harness::{Caller, Options, Server};
use serde_json::json;

use super::grants::permission;
use crate::given::{self, generate_certificate, set_value};

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
    writer
        .delete("/api/v1/data?name=/made/it")
        .await
        .expect(404);
    assert_eq!(given::versions(&server, "/made/it").await, [made]);
}

#[tokio::test]
async fn permissions_survive_deleting_and_recreating_the_credential() {
    let (server, caller) = server_with(&[("/it", &["read", "delete"])]).await;
    let target = "/api/v1/data?name=/it";
    for _ in 0..2 {
        caller.get(target).await.expect(404);
        set_value(&server, "/it", "v").await;
        caller.get(target).await.expect(200);
        caller.delete(target).await.expect(204);
    }
}

#[tokio::test]
async fn a_request_by_name_needs_its_own_casing_and_the_stored_one() {
    let operations: &[&str] = &["read", "write", "delete"];
    let permissions = [
        ("/Folder/It", operations),
        ("/folder/it", operations),
        ("/Only/*", operations),
    ];
    let (server, caller) = server_with(&permissions).await;
    set_value(&server, "/folder/it", "v").await;
    let named = |name| format!("/api/v1/data?name={name}");
    caller.get(&named("/Folder/It")).await.expect(200);
    caller.get(&named("/folder/it")).await.expect(200);
    let stored = set_value(&server, "/only/it", "v").await;
    for other in ["/Folder/it", "/FOLDER/IT", "/Only/it", "/only/it"] {
        caller.get(&named(other)).await.expect(404);
        caller.delete(&named(other)).await.expect(404);
        let body = json!({"name": other, "type": "value", "value": "v"});
        caller.put("/api/v1/data", body).await.expect(403);
    }
    let by_id = format!("/api/v1/data/{}", given::id(&stored));
    caller.get(&by_id).await.expect(404);
    for search in ["path=/Only", "name-like=only"] {
        let found = caller
            .get(&format!("/api/v1/data?{search}"))
            .await
            .expect(200);
        assert_eq!(found.json(), json!({"credentials": []}), "{search}");
    }
    let body = json!({"name": "/Folder/It", "type": "value", "value": "w"});
    caller.put("/api/v1/data", body).await.expect(200);
    assert_eq!(given::newest(&server, "/folder/it").await["value"], "w");
    caller.delete(&named("/Folder/It")).await.expect(204);
}

#[tokio::test]
async fn requests_by_id_and_searches_need_the_stored_casing() {
    let (server, caller) = server_with(&[("/Folder/It", &["read", "write"])]).await;
    let stored = set_value(&server, "/Folder/It", "v").await;
    let by_id = format!("/api/v1/data/{}", given::id(&stored));
    caller.get(&by_id).await.expect(200);
    for search in ["path=/folder", "path=/FOLDER/", "name-like=it"] {
        let found = caller
            .get(&format!("/api/v1/data?{search}"))
            .await
            .expect(200);
        assert_eq!(
            found.json()["credentials"][0]["name"],
            "/Folder/It",
            "{search}"
        );
    }
}

#[tokio::test]
async fn certificate_requests_by_id_need_the_stored_casing() {
    let (server, caller) = server_with(&[("/Ca", &["read", "write"]), ("/other", &["read"])]).await;
    for (name, status) in [("/Ca", 200), ("/OTHER", 404)] {
        generate_certificate(&server, name, json!({"is_ca": true})).await;
        let target = format!("/api/v1/certificates?name={name}");
        let listed = server.get(&target).await.expect(200).json();
        let id = listed["certificates"][0]["id"].clone();
        let versions = format!(
            "/api/v1/certificates/{}/versions",
            id.as_str().unwrap_or_default()
        );
        caller.get(&versions).await.expect(status);
    }
}

/// A server, and a client with these permissions on it.
async fn server_with(permissions: &[(&str, &[&str])]) -> (Server, Caller) {
    let actor = ["uaa-client:caller".to_owned()];
    let sections: String = permissions
        .iter()
        .map(|(path, operations)| permission(path, &actor, operations))
        .collect();
    let server = Server::start_with(&Options::default().extra(&sections)).await;
    let caller = server.as_client("caller").await;
    (server, caller)
}
