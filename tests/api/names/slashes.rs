//! The leading slash, which is optional everywhere.

use keywright_harness::Server;
use serde_json::json;

use crate::given;

#[tokio::test]
async fn a_leading_slash_is_prepended_in_every_request() {
    let server = Server::start().await;
    let version = given::set(&server, "a/json", "json", json!({"k": 1})).await;
    assert_eq!(version["name"], "/a/json");
    let version = given::generate(&server, "a/password", "password", json!({})).await;
    assert_eq!(version["name"], "/a/password");

    for path in [
        "name=a/password",
        "name=/a/password",
        "name=a%2Fpassword&current=true",
    ] {
        let answer = server
            .get(&format!("/api/v1/data?{path}"))
            .await
            .expect(200);
        assert_eq!(given::data(&answer)[0]["id"], version["id"], "{path}");
    }
    for name in ["a/password", "/a/password"] {
        server
            .post("/api/v1/regenerate", json!({"name": name}))
            .await
            .expect(200);
        let body = json!({"name": name, "regenerate": true});
        server.post("/api/v1/data", body).await.expect(200);
    }
    assert_eq!(given::versions(&server, "/a/password").await.len(), 5);
    for path in ["a", "/a", "a/", "/a/"] {
        let found = given::found(&server, &format!("path={path}")).await;
        assert_eq!(found, ["/a/password", "/a/json"], "{path}");
    }
    for reference in ["a/json", "/a/json", "((a/json))"] {
        let document = json!({"s": [{"credentials": {"credhub-ref": reference}}]});
        let answer = server
            .post("/api/v1/interpolate", document)
            .await
            .expect(200);
        assert_eq!(
            answer.json(),
            json!({"s": [{"credentials": {"k": 1}}]}),
            "{reference}"
        );
    }
    server.delete("/api/v1/data?name=a/json").await.expect(204);
    server
        .delete("/api/v1/data?name=a/password")
        .await
        .expect(204);
}

#[tokio::test]
async fn the_name_of_an_issuer_may_lack_its_slash() {
    let server = Server::start().await;
    let root = json!({"common_name": "root", "is_ca": true});
    let root = given::generate(&server, "/root", "certificate", root).await;
    let leaf = json!({"common_name": "leaf", "ca": "root"});
    let leaf = given::generate(&server, "/leaf", "certificate", leaf).await;
    assert_eq!(leaf["value"]["ca"], root["value"]["certificate"]);
    let certificate = leaf["value"]["certificate"].clone();
    let value = json!({"ca_name": "root", "certificate": certificate});
    let set = given::set(&server, "/set", "certificate", value).await;
    assert_eq!(set["value"]["ca"], root["value"]["certificate"]);
}
