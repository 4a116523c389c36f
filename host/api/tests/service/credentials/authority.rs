//! A CA that gets another version while it signs.

use std::sync::atomic::Ordering;

use serde_json::{Value, json};

use super::{DATA, check};
use crate::harness::Service;

/// Requests for which one version of a CA signs, or that return the signing version.
fn requests(leaf_id: &str) -> [(&'static str, String, Value); 6] {
    let certificate = json!({"certificate": "x", "ca_name": "/root"});
    [
        (
            "POST",
            DATA.to_owned(),
            json!({"name": "/leaf", "type": "certificate", "mode": "overwrite", "parameters": {"ca": "/root"}}),
        ),
        (
            "POST",
            DATA.to_owned(),
            json!({"name": "/leaf", "type": "certificate", "mode": "converge", "parameters": {"ca": "/root", "duration": 9}}),
        ),
        (
            "POST",
            "/api/v1/regenerate".to_owned(),
            json!({"name": "/leaf"}),
        ),
        (
            "POST",
            format!("/api/v1/certificates/{leaf_id}/regenerate"),
            json!({}),
        ),
        (
            "POST",
            format!("/api/v1/certificates/{leaf_id}/versions"),
            json!({"value": certificate}),
        ),
        (
            "PUT",
            DATA.to_owned(),
            json!({"name": "/leaf", "type": "certificate", "value": certificate}),
        ),
    ]
}

async fn service_with_leaf() -> (Service, String) {
    let service = Service::new();
    service.memory.store_signed("/root", "/root");
    let generate = json!({"name": "/leaf", "type": "certificate", "parameters": {"ca": "/root"}});
    check(&service, "POST", DATA, generate, 200).await;
    let id = service.memory.credential_id("/leaf").to_string();
    (service, id)
}

#[tokio::test]
async fn values_are_regenerated_with_the_current_signing_version() {
    let (service, id) = service_with_leaf().await;
    for (method, path, body) in requests(&id) {
        let root = service.memory.newest_id("/root");
        let count = service.memory.count();
        let replaced = &service.memory.root_replaced_before_append;
        replaced.store(1, Ordering::SeqCst);
        check(&service, method, &path, body.clone(), 200).await;
        let newest_root = service.memory.newest_id("/root");
        assert_ne!(newest_root, root);
        let issuer = service.memory.newest_issuer("/leaf");
        assert_eq!(issuer, Some(newest_root), "{method} {path} {body}");
        assert_eq!(service.memory.count(), count + 2);
    }
}

#[tokio::test]
async fn a_constantly_changing_ca_is_a_retryable_error() {
    let (service, id) = service_with_leaf().await;
    let replaced = &service.memory.root_replaced_before_append;
    replaced.store(usize::MAX, Ordering::SeqCst);
    for (method, path, body) in requests(&id) {
        let leaf = service.memory.newest_id("/leaf");
        check(&service, method, &path, body, 503).await;
        assert_eq!(service.memory.newest_id("/leaf"), leaf);
    }
}
