//! `GET /api/v1/certificates/{certificate_id}/versions`.

use keywright_harness::Server;
use serde_json::{Value, json};

use super::{Certificate, ids};
use crate::given;

#[tokio::test]
async fn all_versions_come_newest_first_as_they_do_by_name() {
    let server = Server::start().await;
    let root = Certificate::generate_root(&server, "/a").await;
    let body = json!({"set_as_transitional": true, "metadata": {"a": 1}});
    root.regenerate(body).await.expect(200);
    root.regenerate(json!({})).await.expect(200);
    let versions = root.versions().await;
    assert_eq!(versions.len(), 3);
    assert_eq!(versions, given::versions(&server, "/a").await);
    for query in ["?current=false", "?current=FALSE", "?unknown=1"] {
        assert_eq!(root.versions_where(query).await, versions, "{query}");
    }
}

#[tokio::test]
async fn current_returns_the_active_and_then_the_transitional_version() {
    let server = Server::start().await;
    let root = Certificate::generate_root(&server, "/a").await;
    let body = json!({"set_as_transitional": true});
    root.regenerate(body).await.expect(200);
    let [transitional, first] = ids(&root.versions().await).try_into().unwrap();
    assert_eq!(
        ids(&root.current().await),
        [first.clone(), transitional.clone()]
    );

    let newest = given::id(&root.regenerate(json!({})).await.expect(200).json());
    assert_eq!(ids(&root.current().await), [newest.clone(), transitional]);
    let answer = server.get("/api/v1/data?name=/a&current=true").await;
    assert_eq!(root.current().await, given::data(&answer));

    root.move_transitional(Value::Null).await.expect(200);
    assert_eq!(ids(&root.current().await), std::slice::from_ref(&newest));
    root.move_transitional(json!(first)).await.expect(200);
    assert_eq!(ids(&root.current().await), [newest, first]);
}

#[tokio::test]
async fn current_returns_a_lone_transitional_version() {
    let server = Server::start().await;
    let parameters = json!({"common_name": "a", "is_ca": true, "key_type": "ecdsa-p256"});
    let root = Certificate::generate(&server, "/a", parameters).await;
    root.move_transitional(json!("latest")).await.expect(200);
    let only = root.versions().await;
    assert_eq!(only[0]["transitional"], true);
    assert_eq!(root.current().await, only);
    let answer = server.get("/api/v1/data?name=/a&current=true").await;
    assert_eq!(given::data(&answer.expect(200)), only);
}

#[tokio::test]
async fn an_invalid_current_is_400() {
    let server = Server::start().await;
    let root = Certificate::generate_root(&server, "/a").await;
    for query in ["current=maybe", "current=2", "current=true&current=true"] {
        let answer = server.get(&root.path(&format!("versions?{query}"))).await;
        assert!(answer.expect(400).error().contains("current"), "{query}");
    }
}
