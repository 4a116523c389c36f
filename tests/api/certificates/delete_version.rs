//! `DELETE /api/v1/certificates/{certificate_id}/versions/{version_id}`.

use keywright_harness::Server;
use serde_json::{Value, json};

use super::{Certificate, ids, transitional};
use crate::{given, made_elsewhere::authority};

#[tokio::test]
async fn the_deleted_version_is_returned_and_gone() {
    let server = Server::start().await;
    let certificate = Certificate::set_times(&server, "/a", 3).await;
    let [newest, middle, oldest] = certificate.versions().await.try_into().unwrap();
    let deleted = certificate.delete_version(&given::id(&middle)).await;
    assert_eq!(deleted.expect(200).json(), middle);
    assert_eq!(
        certificate.versions().await,
        [newest.clone(), oldest.clone()]
    );
    let by_id = format!("/api/v1/data/{}", given::id(&middle));
    server.get(&by_id).await.expect(404);

    let deleted = certificate.delete_version(&given::id(&newest)).await;
    assert_eq!(deleted.expect(200).json(), newest);
    assert_eq!(given::versions(&server, "/a").await.first(), Some(&oldest));
    assert_eq!(certificate.versions().await.len(), 1);
    assert_eq!(certificate.current().await, [oldest]);
}

#[tokio::test]
async fn the_last_version_cannot_be_deleted() {
    let server = Server::start().await;
    let certificate = Certificate::set_times(&server, "/a", 1).await;
    let only = certificate.versions().await;
    for flag in [Value::Null, json!("latest")] {
        certificate.move_transitional(flag).await.expect(200);
        let answer = certificate.delete_version(&given::id(&only[0])).await;
        answer.expect(400).error();
        assert_eq!(ids(&certificate.versions().await), ids(&only));
    }
    server.delete("/api/v1/data?name=/a").await.expect(204);
}

#[tokio::test]
async fn an_absent_or_foreign_version_is_404() {
    let server = Server::start().await;
    let certificate = Certificate::set_times(&server, "/a", 3).await;
    let other = Certificate::set_times(&server, "/other", 2).await;
    let value = given::set_value(&server, "/value", "text").await;
    let gone = given::id(&certificate.versions().await[0]);
    certificate.delete_version(&gone).await.expect(200);
    for version in [
        gone,
        given::id(&other.versions().await[0]),
        given::id(&value),
        certificate.id.clone(),
        "8ffd2a43-0ba6-44cf-8b55-e2e9ba2cb9e9".to_owned(),
        "x".to_owned(),
        "%00".to_owned(),
        "%FF".to_owned(),
    ] {
        let answer = certificate.delete_version(&version).await;
        assert_eq!(answer.status, 404, "{version}: {answer:?}");
        answer.error();
    }
    assert_eq!(certificate.versions().await.len(), 2);
    assert_eq!(other.versions().await.len(), 2);
    assert_eq!(given::versions(&server, "/value").await, [value]);
}

#[tokio::test]
async fn deleting_the_transitional_version_allows_another() {
    let server = Server::start().await;
    let certificate = Certificate::set_times(&server, "/a", 1).await;
    let body = json!({
        "value": {"certificate": authority("next").certificate}, "transitional": true,
    });
    let first = certificate
        .add_version(body.clone())
        .await
        .expect(200)
        .json();
    let deleted = certificate.delete_version(&given::id(&first)).await;
    assert_eq!(deleted.expect(200).json(), first);
    let second = certificate.add_version(body).await.expect(200).json();
    assert_eq!(
        transitional(&certificate.versions().await),
        [given::id(&second)]
    );
}
