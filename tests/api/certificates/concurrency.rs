//! Simultaneous writers of one certificate.

use std::sync::Arc;

use keywright_harness::{Response, Server};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::{sync::Barrier, task::JoinSet};

use super::{Certificate, transitional};
use crate::{external_certificates::authority, given};

/// Sends the requests simultaneously, each from its own task.
async fn at_once(server: &Server, requests: Vec<(Method, String, Value)>) -> Vec<Response> {
    let barrier = Arc::new(Barrier::new(requests.len()));
    let mut calls = JoinSet::new();
    for (method, path, body) in requests {
        let request = server.authorized(method, &path).body(body.to_string());
        let barrier = Arc::clone(&barrier);
        calls.spawn(async move {
            barrier.wait().await;
            Response::to(request).await
        });
    }
    calls.join_all().await
}

fn statuses(responses: &[Response]) -> Vec<u16> {
    let mut statuses: Vec<u16> = responses.iter().map(|response| response.status).collect();
    statuses.sort_unstable();
    statuses
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_of_two_concurrent_transitional_regenerations_succeeds() {
    let server = Server::reused().await;
    let certificate = Certificate::generate_root(&server, "/a").await;
    let body = json!({"set_as_transitional": true});
    for round in 0..6 {
        let before = certificate.versions().await.len();
        let request = (Method::POST, certificate.path("regenerate"), body.clone());
        let responses = at_once(&server, vec![request.clone(), request]).await;
        assert_eq!(statuses(&responses), [200, 400], "{round}");
        let refused = responses
            .iter()
            .find(|response| response.status == 400)
            .unwrap();
        assert!(refused.error().contains("transitional"), "{refused:?}");
        let versions = certificate.versions().await;
        assert_eq!(versions.len(), before + 1);
        assert_eq!(transitional(&versions).len(), 1);
        certificate.move_transitional(Value::Null).await.expect(200);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_regeneration_restores_no_replaced_parameters() {
    let server = Server::reused().await;
    let certificate = Certificate::generate_root(&server, "/a").await;
    let by_name = ("/api/v1/regenerate".to_owned(), json!({"name": "/a"}));
    let by_id = (certificate.path("regenerate"), json!({}));
    let generate = |kind: &str| {
        let parameters = json!({"common_name": "a", "key_type": "ed25519", kind: true});
        json!({"name": "/a", "type": "certificate", "mode": "overwrite", "parameters": parameters})
    };
    for round in 0..20 {
        let (path, body) = if round % 2 == 0 { &by_name } else { &by_id };
        let leaf = generate("self_sign");
        server.post("/api/v1/data", leaf).await.expect(200);
        let requests = vec![
            (Method::POST, path.clone(), body.clone()),
            (Method::POST, "/api/v1/data".to_owned(), generate("is_ca")),
        ];
        assert_eq!(statuses(&at_once(&server, requests).await), [200, 200]);
        let newest = &certificate.versions().await[0];
        assert_eq!(newest["certificate_authority"], true, "{round}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_of_many_concurrent_transitional_versions_is_added() {
    let server = Server::reused().await;
    let value = json!({"certificate": authority("root").certificate});
    let certificate = Certificate::set(&server, "/a", value.clone()).await;
    let body = json!({"value": value, "transitional": true});
    for _ in 0..10 {
        let request = (Method::POST, certificate.path("versions"), body.clone());
        let responses = at_once(&server, vec![request; 8]).await;
        let actual = statuses(&responses);
        assert_eq!(actual, [200, 400, 400, 400, 400, 400, 400, 400]);
        assert_eq!(transitional(&certificate.versions().await).len(), 1);
        certificate.move_transitional(Value::Null).await.expect(200);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn at_most_one_version_is_transitional_under_concurrency() {
    let server = Server::reused().await;
    let value = json!({"certificate": authority("root").certificate});
    let certificate = Certificate::set(&server, "/a", value.clone()).await;
    let add = json!({"value": value, "transitional": true});
    let add = (Method::POST, certificate.path("versions"), add);
    for _ in 0..10 {
        let moved = json!({"version": "latest"});
        let moved = (
            Method::PUT,
            certificate.path("update_transitional_version"),
            moved,
        );
        let requests = vec![add.clone(), moved.clone(), add.clone(), moved];
        for response in at_once(&server, requests).await {
            assert!([200, 400].contains(&response.status), "{response:?}");
        }
        assert_eq!(transitional(&certificate.versions().await).len(), 1);
        certificate.move_transitional(Value::Null).await.expect(200);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn simultaneous_deletions_of_all_versions_leave_one() {
    let server = Server::reused().await;
    let value = json!({"certificate": authority("root").certificate});
    for _ in 0..8 {
        server.stored("/a", "certificate", value.clone()).await;
    }
    let certificate = Certificate::named(&server, "/a").await;
    let versions = certificate.versions().await;
    let requests = versions.iter().map(|version| {
        let path = certificate.path(&format!("versions/{}", given::id(version)));
        (Method::DELETE, path, Value::Null)
    });
    let responses = at_once(&server, requests.collect()).await;
    let actual = statuses(&responses);
    assert_eq!(actual, [200, 200, 200, 200, 200, 200, 200, 400]);
    assert_eq!(certificate.versions().await.len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_regeneration_adds_no_version_to_a_recreated_certificate() {
    let server = Server::reused().await;
    let value = json!({"certificate": authority("root").certificate});
    for round in 0..6 {
        let old = Certificate::set(&server, "/a", value.clone()).await;
        let request = server.authorized(Method::POST, &old.path("regenerate"));
        let regenerating = tokio::spawn(Response::to(request.body("{}")));
        tokio::task::yield_now().await;
        // Depending on timing, this deletes the certificate before, during or after key generation.
        server.delete("/api/v1/data?name=/a").await.expect(204);
        let new = Certificate::set(&server, "/a", value.clone()).await;
        let response = regenerating.await.unwrap();
        assert!(
            [200, 404].contains(&response.status),
            "{round}: {response:?}"
        );
        assert_eq!(new.versions().await.len(), 1, "{round}");
        server.delete("/api/v1/data?name=/a").await.expect(204);
    }
}
