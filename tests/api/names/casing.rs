//! Names are looked up in any casing, and keep the casing of their first writer.

use keywright_harness::Server;
use serde_json::json;

use crate::given;

#[tokio::test]
async fn a_name_is_found_in_any_casing_and_returned_as_first_set() {
    let server = Server::start().await;
    let version = given::generate(&server, "/Team/Password", "password", json!({})).await;
    for name in [
        "/Team/Password",
        "/team/password",
        "/TEAM/PASSWORD",
        "tEAM/pASSWORD",
    ] {
        assert_eq!(
            given::versions(&server, name).await,
            std::slice::from_ref(&version),
            "{name}"
        );
    }
    let by_id = server
        .get(&format!("/api/v1/data/{}", given::id(&version)))
        .await
        .expect(200);
    assert_eq!(by_id.json()["name"], "/Team/Password");
    assert_eq!(
        given::found(&server, "path=/TEAM").await,
        ["/Team/Password"]
    );
}

#[tokio::test]
async fn a_writer_in_another_casing_adds_a_version_and_keeps_the_name() {
    let server = Server::start().await;
    given::generate(&server, "/Team/Password", "password", json!({})).await;
    let set = given::set(&server, "/TEAM/password", "password", json!("p")).await;
    assert_eq!(set["name"], "/Team/Password");
    let overwrite = json!({"name": "/team/PASSWORD", "type": "password", "mode": "overwrite"});
    let overwritten = server
        .post("/api/v1/data", overwrite)
        .await
        .expect(200)
        .json();
    assert_eq!(overwritten["name"], "/Team/Password");
    let regenerate = json!({"name": "/team/password"});
    let regenerated = server
        .post("/api/v1/regenerate", regenerate)
        .await
        .expect(200)
        .json();
    assert_eq!(regenerated["name"], "/Team/Password");
    let kept = json!({"name": "/TEAM/PASSWORD", "type": "password", "mode": "no-overwrite"});
    let kept = server.post("/api/v1/data", kept).await.expect(200).json();
    assert_eq!(kept, regenerated);
    let versions = given::versions(&server, "/team/password").await;
    assert_eq!(versions.len(), 4);
    assert!(
        versions
            .iter()
            .all(|version| version["name"] == "/Team/Password")
    );
}

#[tokio::test]
async fn a_delete_in_another_casing_deletes() {
    let server = Server::start().await;
    given::set_value(&server, "/Team/Value", "v").await;
    server
        .delete("/api/v1/data?name=/TEAM/vALUE")
        .await
        .expect(204);
    server
        .get("/api/v1/data?name=/Team/Value")
        .await
        .expect(404);
}

#[tokio::test]
async fn the_first_writer_after_deletion_chooses_the_casing() {
    let server = Server::start().await;
    given::set_value(&server, "/Team/Value", "v").await;
    server
        .delete("/api/v1/data?name=/team/value")
        .await
        .expect(204);
    assert_eq!(
        given::set_value(&server, "/TEAM/VALUE", "v").await["name"],
        "/TEAM/VALUE"
    );
}

#[tokio::test]
async fn an_issuer_and_a_reference_are_found_in_any_casing() {
    let server = Server::start().await;
    let root = json!({"common_name": "root", "is_ca": true});
    let root = given::generate(&server, "/Root", "certificate", root).await;
    let leaf = json!({"common_name": "leaf", "ca": "/rOOT"});
    let leaf = given::generate(&server, "/leaf", "certificate", leaf).await;
    assert_eq!(leaf["value"]["ca"], root["value"]["certificate"]);
    given::set(&server, "/Binding", "json", json!({"k": 1})).await;
    let document = json!({"s": [{"credentials": {"credhub-ref": "/BINDING"}}]});
    let answer = server
        .post("/api/v1/interpolate", document)
        .await
        .expect(200);
    assert_eq!(answer.json(), json!({"s": [{"credentials": {"k": 1}}]}));
}
