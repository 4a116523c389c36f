//! The order of checks: syntax, then permissions, then everything else.

use keywright_harness::{Options, Server};
use serde_json::json;

use super::permission;
use crate::{certificates::Certificate, given};

/// Requests with bad bodies or queries, and one good request for a certificate that does not exist.
const BAD_REQUESTS: &str = r#"
    422 PUT /api/v1/data {"name": "/it"}
    400 PUT /api/v1/data {"name": "/it", "type": "value"}
    400 PUT /api/v1/data {"name": "/it", "type": "value", "value": ""}
    422 PUT /api/v1/data {"name": "/it", "type": "value", "value": "v", "x": 1}
    400 PUT /api/v1/data {"name": "/i t", "type": "value", "value": "v"}
    400 PUT /api/v1/data {"name": "/it", "type": "user", "value": {}}
    400 PUT /api/v1/data {"name": "/it", "type": "certificate", "value": {"certificate": "x"}}
    400 PUT /api/v1/data {"name": "/it", "type": "certificate", "value": {"ca": "x", "ca_name": "/ca"}}
    400 POST /api/v1/data {"name": "/it"}
    400 POST /api/v1/data {"name": "/it", "type": "value"}
    400 POST /api/v1/data {"name": "/it", "type": "password", "mode": "x"}
    400 POST /api/v1/data {"name": "/it", "type": "password", "parameters": {"length": 3}}
    400 POST /api/v1/data {"name": "/it", "type": "certificate", "parameters": {"ca": "/ca"}}
    400 POST /api/v1/data {"name": "/it", "regenerate": true, "x": 1}
    400 POST /api/v1/data {"name": "", "regenerate": true}
    400 POST /api/v1/regenerate {}
    422 POST /api/v1/regenerate {"name": "/it", "x": 1}
    400 POST /api/v1/bulk-regenerate {}
    422 POST /api/v1/bulk-regenerate {"signed_by": "/it", "x": 1}
    400 POST /api/v1/interpolate []
    422 POST {certificate}/regenerate {"x": 1}
    400 POST {certificate}/regenerate {"set_as_transitional": "x"}
    400 POST {certificate}/regenerate {"duration": 0}
    400 POST {certificate}/regenerate {"duration": 3651}
    400 POST {certificate}/regenerate {"duration": "x"}
    400 POST {certificate}/regenerate {"key_length": 0}
    400 POST {certificate}/regenerate {"key_length": []}
    404 POST {certificate}/regenerate {"key_length": 2048, "duration": "3650"}
    422 PUT {certificate}/update_transitional_version {"version": null, "x": 1}
    400 POST {certificate}/versions {}
    400 POST {certificate}/versions {"value": {"certificate": "x"}}
    400 GET {certificate}/versions?current=maybe
    400 DELETE /api/v1/data
    400 GET /api/v1/data
    400 GET /api/v1/data?name=/it&versions=-1
    400 GET /api/v2/permissions
    422 POST /api/v2/permissions {}
    400 POST /api/v2/permissions {"path": "/a*", "actor": "x", "operations": ["read"]}
    422 POST /api/v2/permissions {"path": "/a", "actor": "x", "operations": ["execute"]}
    422 POST /api/v2/permissions {"unknown": 1, "operations": ["read"]}
    400 PUT {permission} {"path": "/a", "actor": "", "operations": ["read"]}
    422 PUT {permission} {"path": "/a", "actor": "other", "operations": ["execute"]}
    422 PATCH {permission} {}
    422 PATCH {permission} {"operations": ["execute"]}
    400 GET /api/v1/permissions
    400 DELETE /api/v1/permissions
    400 POST /api/v1/permissions {"credential_name": "/a", "permissions": [{"path": "/b", "actor": "x", "operations": ["read"]}]}
    422 POST /api/v1/permissions {"credential_name": "/a", "permissions": [{"path": "/a", "actor": "x", "operations": ["execute"]}]}
    400 GET /api/v2/permissions/explain
"#;

#[tokio::test]
async fn a_bad_body_is_reported_before_a_missing_permission() {
    let server = Server::reused().await;
    server.set_value("/it", "v").await;
    let stranger = server.as_client("stranger").await;
    let certificate = "/api/v1/certificates/7c3b2d1e-0000-4000-8000-000000000000";
    let id = server.grant("/a", "other", &["read"]).await;
    let table = BAD_REQUESTS
        .replace("{certificate}", certificate)
        .replace("{permission}", &format!("/api/v2/permissions/{id}"));
    for (status, method, target, body) in given::requests(&table) {
        let what = format!("{method} {target} {body}");
        let response = stranger.send(method, &target, body).await;
        assert_eq!(response.status, status, "{what}: {response:?}");
    }
}

/// Requests of a caller who may only write below `/may`.
const UNPERMITTED_REQUESTS: &str = r#"
    # Another type than the credential's, and one that can't be regenerated.
    403 PUT /api/v1/data {"name": "/it", "type": "json", "value": {}}
    403 POST /api/v1/data {"name": "/it", "type": "password"}
    403 POST /api/v1/regenerate {"name": "/it"}
    # Write permission is checked first, then read permission on the CA, then its existence.
    403 POST /api/v1/data {"name": "/it", "type": "certificate", "parameters": {"common_name": "c", "ca": "/ca"}}
    404 POST /api/v1/data {"name": "/may/leaf", "type": "certificate", "parameters": {"common_name": "c", "ca": "/ca"}}
    # Names that do not exist.
    403 PUT /api/v1/data {"name": "/absent", "type": "value", "value": "v"}
    403 POST /api/v1/data {"name": "/absent", "type": "password"}
    403 POST /api/v1/data {"name": "/absent", "regenerate": true}
    403 POST /api/v1/regenerate {"name": "/absent"}
    404 POST /api/v1/regenerate {"name": "/may/absent"}
"#;

#[tokio::test]
async fn a_missing_permission_is_reported_before_stored_state() {
    let actor = ["uaa-client:writer".to_owned()];
    let options = Options::default().extra(&permission("/may/*", &actor, &["write"]));
    let server = Server::start_with(&options).await;
    server.set_value("/it", "v").await;
    server.issued("/ca", json!({"is_ca": true})).await;
    let writer = server.as_client("writer").await;
    for (status, method, target, body) in given::requests(UNPERMITTED_REQUESTS) {
        let what = format!("{method} {target} {body}");
        let response = writer.send(method, &target, body).await;
        assert_eq!(response.status, status, "{what}: {response:?}");
    }
}

#[tokio::test]
async fn the_first_forbidden_reference_fails_an_interpolation() {
    let options = Options::default().extra(&permission(
        "/readable/*",
        &["uaa-client:reader".to_owned()],
        &["read"],
    ));
    let server = Server::start_with(&options).await;
    server
        .set_value("/readable/text", "canary-of-a-value")
        .await;
    let json = json!({"secret": "canary-of-a-value"});
    server.stored("/readable/json", "json", json.clone()).await;
    server.stored("/hidden", "json", json.clone()).await;
    // The server queries many names differently from a few.
    let others = (0..16).map(|number| format!("/readable/{number}"));
    let others: Vec<String> = others.collect();
    for name in &others {
        server.stored(name, "json", json.clone()).await;
    }
    let reader = server.as_client("reader").await;
    for (names, status) in [
        (&["/readable/json"][..], 200),
        (&["/readable/json", "/readable/json"], 200),
        (&["/READABLE/json"], 404),
        (&["/readable/json", "/READABLE/json"], 404),
        (&["/hidden"], 404),
        (&["/readable/json", "/hidden"], 404),
        (&["/readable/json", "/absent"], 404),
        (&["/hidden", "/readable/text"], 404),
        (&["/readable/text", "/hidden"], 400),
        (&["/readable/absent", "/readable/text"], 404),
    ] {
        for others in [&[][..], &others] {
            let all = others
                .iter()
                .map(String::as_str)
                .chain(names.iter().copied());
            let references = all.map(|name| json!({"credentials": {"credhub-ref": name}}));
            let body = json!({"VCAP": references.collect::<Vec<_>>()});
            let response = reader.post("/api/v1/interpolate", body).await;
            assert_eq!(response.status, status, "{names:?}: {response:?}");
            assert_eq!(response.body.contains("canary"), status == 200, "{names:?}");
        }
    }
}

#[tokio::test]
async fn writing_a_certificate_by_id_needs_no_permission_on_its_ca() {
    let options = Options::default().extra(&permission(
        "/leaf",
        &["uaa-client:writer".to_owned()],
        &["write"],
    ));
    let server = Server::start_with(&options).await;
    server.issued("/ca", json!({"is_ca": true})).await;
    server.issued("/leaf", json!({"ca": "/ca"})).await;
    let leaf = Certificate::named(&server, "/leaf").await;
    let writer = server.as_client("writer").await;
    let by_id = leaf.path("regenerate");
    writer.post(&by_id, json!({})).await.expect(200);
    let by_name = json!({"name": "/leaf"});
    writer.post("/api/v1/regenerate", by_name).await.expect(404);
}

/// Otherwise, a caller could get certificates from another actor's CA that has the name of a deleted CA.
#[tokio::test]
async fn a_new_ca_with_the_signers_name_requires_read_permission() {
    let server = Server::reused().await;
    let app = server.as_client("app").await;
    server.grant("/leaf", app.actor(), &["write"]).await;
    server.issued("/ca", json!({"is_ca": true})).await;
    server.issued("/leaf", json!({"ca": "/ca"})).await;
    let leaf = Certificate::named(&server, "/leaf").await;
    let by_id = leaf.path("regenerate");
    let regenerate = || app.post(&by_id, json!({}));
    regenerate().await.expect(200);
    server
        .generate_in_mode(
            "overwrite",
            "/ca",
            "certificate",
            json!({"common_name": "new", "is_ca": true}),
        )
        .await
        .expect(200);
    regenerate().await.expect(200);

    server.delete("/api/v1/data?name=/ca").await.expect(204);
    server.issued("/ca", json!({"is_ca": true})).await;
    let before = server.versions("/leaf").await.len();
    regenerate().await.expect(404);
    assert_eq!(server.versions("/leaf").await.len(), before);
    server.grant("/ca", app.actor(), &["read"]).await;
    regenerate().await.expect(200);
}

#[tokio::test]
async fn regenerating_requires_the_ca_in_its_stored_casing() {
    let server = Server::reused().await;
    server.issued("/t/ca", json!({"is_ca": true})).await;
    server.issued("/t/leaf", json!({"ca": "/T/CA"})).await;
    let app = server.as_client("app").await;
    server.grant("/t/*", app.actor(), &["read", "write"]).await;
    let body = json!({"name": "/t/leaf"});
    app.post("/api/v1/regenerate", body).await.expect(200);
}

/// Many names are queried differently from a few.
#[tokio::test]
async fn references_are_resolved_with_permission_in_both_casings() {
    let server = Server::reused().await;
    let app = server.as_client("app").await;
    for path in ["/T/*", "/t/*"] {
        server.grant(path, app.actor(), &["read"]).await;
    }
    let other = server.as_client("other").await;
    server.grant("/t/*", other.actor(), &["read"]).await;
    let names: Vec<String> = (0..17).map(|number| format!("/T/{number}")).collect();
    for name in &names {
        server.stored(name, "json", json!({})).await;
    }
    for count in [1, 16, 17] {
        let references = names
            .iter()
            .take(count)
            .map(|name| json!({"credentials": {"credhub-ref": name.to_lowercase()}}));
        let body = json!({"VCAP": references.collect::<Vec<_>>()});
        app.post("/api/v1/interpolate", body.clone())
            .await
            .expect(200);
        let refused = other.post("/api/v1/interpolate", body).await;
        refused.expect(404);
    }
}
