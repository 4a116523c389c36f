//! Searches for certificates with transitional versions.

use keywright_harness::Server;
use serde_json::{Value, json};

use super::{Certificate, ids};
use crate::{given, made_elsewhere::authority};

/// Searches that find everything.
const SEARCHES: [&str; 2] = ["path=", "name-like="];

#[tokio::test]
async fn a_certificate_with_only_a_transitional_version_is_not_found() {
    let server = Server::start().await;
    let value = json!({"certificate": authority("root").certificate});
    let certificate = Certificate::set(&server, "/a", value.clone()).await;
    for (flag, found) in [
        (json!("latest"), vec![]),
        (Value::Null, vec!["/a"]),
        (json!("latest"), vec![]),
    ] {
        certificate
            .move_transitional(flag.clone())
            .await
            .expect(200);
        for search in SEARCHES {
            assert_eq!(
                given::found(&server, search).await,
                found,
                "{search} {flag}"
            );
        }
    }
    assert_eq!(certificate.current().await.len(), 1);
    certificate
        .add_version(json!({"value": value}))
        .await
        .expect(200);
    for search in SEARCHES {
        assert_eq!(given::found(&server, search).await, ["/a"], "{search}");
    }
}

#[tokio::test]
async fn after_deleting_active_versions_a_certificate_is_not_found() {
    let server = Server::start().await;
    let value = json!({"certificate": authority("root").certificate});
    let certificate = Certificate::set(&server, "/a", value.clone()).await;
    let body = json!({"value": value, "transitional": true});
    certificate.add_version(body).await.expect(200);
    let first = ids(&certificate.versions().await)[1].clone();
    certificate.delete_version(&first).await.expect(200);
    for search in SEARCHES {
        assert!(given::found(&server, search).await.is_empty(), "{search}");
    }
}

#[tokio::test]
async fn certificates_are_found_in_the_order_of_the_versions_in_use() {
    let server = Server::start().await;
    let value = json!({"certificate": authority("root").certificate});
    let a = Certificate::set(&server, "/a", value.clone()).await;
    Certificate::set(&server, "/b", value.clone()).await;
    let newest = json!({"value": value});
    let newest = a.add_version(newest).await.expect(200).json();
    assert_eq!(given::found(&server, "path=").await, ["/a", "/b"]);
    a.move_transitional(newest["id"].clone()).await.expect(200);
    assert_eq!(given::found(&server, "path=").await, ["/b", "/a"]);
    a.move_transitional(Value::Null).await.expect(200);
    assert_eq!(given::found(&server, "path=").await, ["/a", "/b"]);
    a.delete_version(&given::id(&newest)).await.expect(200);
    assert_eq!(given::found(&server, "path=").await, ["/b", "/a"]);
}

#[tokio::test]
async fn expiry_searches_use_the_newest_version_of_any_kind() {
    let server = Server::start().await;
    let parameters = json!({"self_sign": true, "duration": 400});
    let certificate = Certificate::generate(&server, "/a", parameters).await;
    let soon = "path=&expires-within-days=20";
    assert!(given::found(&server, soon).await.is_empty());
    let body = json!({"set_as_transitional": true, "duration": 10});
    let newest = certificate.regenerate(body).await.expect(200).json();
    assert_eq!(given::found(&server, soon).await, ["/a"]);
    certificate
        .delete_version(&given::id(&newest))
        .await
        .expect(200);
    assert!(given::found(&server, soon).await.is_empty());
}
