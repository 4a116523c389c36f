//! `PUT /api/v1/certificates/{certificate_id}/update_transitional_version`.

use keywright_harness::Server;
use serde_json::{Value, json};

use super::{Certificate, array, ids, transitional};
use crate::{given, made_elsewhere::authority};

/// A certificate with this many versions, and their ids, oldest first.
async fn with_versions<'a>(
    server: &'a Server,
    name: &str,
    count: usize,
) -> (Certificate<'a>, Vec<String>) {
    let certificate = Certificate::set_times(server, name, count).await;
    let mut ids = ids(&certificate.versions().await);
    ids.reverse();
    (certificate, ids)
}

#[tokio::test]
async fn the_flag_moves_from_one_version_to_another() {
    let server = Server::start().await;
    let (certificate, versions) = with_versions(&server, "/a", 3).await;
    for (moved, answered) in [
        (json!(versions[0]), vec![&versions[2], &versions[0]]),
        (json!(versions[1]), vec![&versions[2], &versions[1]]),
        (json!(versions[1]), vec![&versions[2], &versions[1]]),
        (json!(versions[2]), vec![&versions[1], &versions[2]]),
        (Value::Null, vec![&versions[2]]),
        (Value::Null, vec![&versions[2]]),
        (json!("latest"), vec![&versions[1], &versions[2]]),
    ] {
        let answer = certificate
            .move_transitional(moved.clone())
            .await
            .expect(200);
        let current = array(&answer);
        assert_eq!(
            ids(&current).iter().collect::<Vec<_>>(),
            answered,
            "{moved}"
        );
        let flagged = if moved.is_null() { &[] } else { &answered[1..] };
        let all = certificate.versions().await;
        assert_eq!(
            transitional(&all).iter().collect::<Vec<_>>(),
            flagged,
            "{moved}"
        );
        assert_eq!(certificate.current().await, current, "{moved}");
        assert!(current[0]["value"]["private_key"].is_string());
    }
    assert_eq!(certificate.versions().await.len(), 3);
}

#[tokio::test]
async fn the_only_version_can_be_flagged_and_is_still_returned() {
    let server = Server::start().await;
    let (certificate, versions) = with_versions(&server, "/a", 1).await;
    let answer = certificate.move_transitional(json!(versions[0])).await;
    let current = array(&answer.expect(200));
    assert_eq!(ids(&current), versions);
    assert_eq!(current[0]["transitional"], true);
}

#[tokio::test]
async fn latest_is_the_newest_version_that_has_a_certificate() {
    let server = Server::start().await;
    let (certificate, versions) = with_versions(&server, "/a", 2).await;
    let without = json!({"private_key": authority("x").private_key});
    let newest = given::set(&server, "/a", "certificate", without.clone()).await;
    let answer = certificate
        .move_transitional(json!("latest"))
        .await
        .expect(200);
    assert_eq!(
        ids(&array(&answer)),
        [given::id(&newest), versions[1].clone()]
    );

    let bare = Certificate::set(&server, "/bare", without).await;
    bare.move_transitional(json!("latest"))
        .await
        .expect(400)
        .error();
    assert!(transitional(&bare.versions().await).is_empty());
}

#[tokio::test]
async fn a_foreign_version_is_400_and_changes_nothing() {
    let server = Server::start().await;
    let (certificate, versions) = with_versions(&server, "/a", 2).await;
    certificate
        .move_transitional(json!(versions[0]))
        .await
        .expect(200);
    let (other, others) = with_versions(&server, "/other", 1).await;
    let value = given::set_value(&server, "/value", "text").await;
    let before = certificate.versions().await;
    for version in [
        others[0].clone(),
        other.id.clone(),
        certificate.id.clone(),
        given::id(&value),
        "8ffd2a43-0ba6-44cf-8b55-e2e9ba2cb9e9".to_owned(),
        "Latest".to_owned(),
        "null".to_owned(),
        "x".to_owned(),
        String::new(),
    ] {
        let answer = certificate.move_transitional(json!(version)).await;
        assert!(answer.expect(400).error().contains("version"), "{version}");
        assert_eq!(certificate.versions().await, before, "{version}");
    }
    assert!(transitional(&other.versions().await).is_empty());
}

#[tokio::test]
async fn each_mistake_in_the_body_has_its_status_and_changes_nothing() {
    let server = Server::start().await;
    let (certificate, versions) = with_versions(&server, "/a", 2).await;
    certificate
        .move_transitional(json!(versions[0]))
        .await
        .expect(200);
    for (body, status, named) in [
        (json!({"version": 1}), 400, "version"),
        (json!({"version": true}), 400, "version"),
        (json!({"version": []}), 400, "version"),
        (json!({"version": null, "unknown": 1}), 422, "unknown"),
        (json!([]), 400, ""),
        (Value::Null, 400, ""),
    ] {
        let answer = certificate.update_transitional_version(body.clone()).await;
        assert!(answer.expect(status).error().contains(named), "{body}");
    }
    assert_eq!(
        transitional(&certificate.versions().await),
        [versions[0].clone()]
    );
}
