//! `POST /api/v1/bulk-regenerate`.

use axum::http::StatusCode;
use keywright_core::credential::{BULK_BYTES_MAX, BULK_CERTIFICATES_MAX, CertificateSettings};
use serde_json::json;

use crate::{
    harness::{Response, Service, good_claims, trusted_key},
    storage::OtherWriter,
};

const BULK_REGENERATE: &str = "/api/v1/bulk-regenerate";

async fn bulk_regenerate(service: &Service) -> Response {
    let body = json!({"signed_by": "/root"});
    service.send_json("POST", BULK_REGENERATE, &body).await
}

fn leaves(count: usize) -> impl Iterator<Item = String> {
    (0..count).map(|number| format!("/leaf/{number}"))
}

#[tokio::test]
async fn bulk_regeneration_has_a_limit() {
    let service = Service::new().await;
    service.storage.store_signed("/root", "/root").await;
    let count = BULK_CERTIFICATES_MAX as usize;
    service
        .storage
        .store_all_signed(leaves(count), "/root")
        .await;
    let response = bulk_regenerate(&service).await;
    assert_eq!(response.status, StatusCode::OK);
    let names = response.json()["regenerated_credentials"].take();
    assert_eq!(names.as_array().unwrap().len(), count);
    assert_eq!(service.storage.count().await, 1 + 2 * count);
    service.storage.store_signed("/one-more", "/leaf/7").await;
    for keeps_going in [false, true] {
        let body = json!({"signed_by": "/root", "keep_going": keeps_going});
        let response = service.send_json("POST", BULK_REGENERATE, &body).await;
        assert_eq!(response.status, StatusCode::PAYLOAD_TOO_LARGE);
        assert!(response.error().contains("10000"), "{}", response.text);
    }
    assert_eq!(service.storage.count().await, 2 + 2 * count);
}

#[tokio::test]
async fn the_total_size_of_a_bulk_regeneration_has_a_limit() {
    let service = Service::new().await;
    for name in ["/root", "/a", "/b"] {
        service.storage.store_signed(name, "/root").await;
    }
    service.storage.add_to_sizes(BULK_BYTES_MAX / 2);
    let body = json!({"generated_by": "0".repeat(64), "path": "/", "dry_run": true});
    for body in [json!({"signed_by": "/root"}), body] {
        let response = service.send_json("POST", BULK_REGENERATE, &body).await;
        assert_eq!(response.status, StatusCode::PAYLOAD_TOO_LARGE);
        assert!(response.error().contains("256 MiB"), "{}", response.text);
    }
    assert_eq!(service.storage.count().await, 3);
    service.storage.add_to_sizes(BULK_BYTES_MAX / 2 - 10_000);
    let response = bulk_regenerate(&service).await;
    assert_eq!(response.status, StatusCode::OK);
}

#[tokio::test]
async fn regeneration_by_plugin_has_the_limit_of_bulk_regeneration() {
    let service = Service::new().await;
    service.storage.store_signed("/root", "/root").await;
    let count = BULK_CERTIFICATES_MAX as usize;
    service
        .storage
        .store_all_signed(leaves(count + 1), "/root")
        .await;
    let body = json!({"generated_by": "0".repeat(64), "path": "/leaf", "dry_run": true});
    let response = service.send_json("POST", BULK_REGENERATE, &body).await;
    assert_eq!(response.status, StatusCode::PAYLOAD_TOO_LARGE);
    assert!(response.error().contains("10000"), "{}", response.text);
    service
        .send("DELETE", "/api/v1/data?name=/leaf/7", "")
        .await;
    let response = service.send_json("POST", BULK_REGENERATE, &body).await;
    assert_eq!(response.status, StatusCode::OK, "{}", response.text);
    let names = response.json()["regenerated_credentials"].take();
    assert_eq!(names.as_array().unwrap().len(), count);
}

#[tokio::test]
async fn constantly_changing_credentials_are_a_retryable_error() {
    let service = Service::new().await;
    service.storage.store_signed("/root", "/root").await;
    service.storage.store_signed("/leaf", "/root").await;
    let replaces = OtherWriter::Replaces(&["/leaf"; ATTEMPTS]);
    service.storage.set_other_writer(replaces);
    let response = bulk_regenerate(&service).await;
    assert_eq!(response.status, StatusCode::SERVICE_UNAVAILABLE);
    assert!(response.headers.contains_key("retry-after"));
    assert_eq!(service.storage.count().await, 2 + ATTEMPTS);
}

#[tokio::test]
async fn a_constantly_changing_credential_does_not_block_the_others() {
    for body in [
        json!({"signed_by": "/root", "keep_going": true}),
        json!({"signed_by": "/root", "path": "/leaf"}),
    ] {
        let service = Service::new().await;
        service.storage.store_signed("/root", "/root").await;
        service.storage.store_all_signed(leaves(2), "/root").await;
        service.storage.store_signed("/changing", "/root").await;
        let replaces = OtherWriter::Replaces(&["/changing"; 99]);
        service.storage.set_other_writer(replaces);
        let response = service.send_json("POST", BULK_REGENERATE, &body).await;
        assert_eq!(response.status, StatusCode::OK, "{}", response.text);
        let response = response.json();
        let names = &response["regenerated_credentials"];
        assert_eq!(*names, json!(["/leaf/0", "/leaf/1"]));
        if let Some(failed) = response.get("failed_credentials") {
            assert_eq!(failed[0]["name"], "/changing");
            assert_eq!(failed.as_array().unwrap().len(), 1);
        }
    }
}

#[tokio::test]
async fn several_changing_cas_do_not_block_the_credentials_of_others() {
    let service = Service::new().await;
    for (name, ca) in [("/root", "/root"), ("/a", "/root"), ("/b", "/root")] {
        service.storage.store_signed(name, ca).await;
    }
    for (name, ca) in [("/leaf/a", "/a"), ("/leaf/b", "/b"), ("/leaf/c", "/root")] {
        service.storage.store_signed(name, ca).await;
    }
    let replaces = OtherWriter::Replaces(&["/a", "/a", "/b", "/a"]);
    service.storage.set_other_writer(replaces);
    let body = json!({"generated_by": "0".repeat(64), "path": "/leaf", "keep_going": true});
    let response = service.send_json("POST", BULK_REGENERATE, &body).await;
    assert_eq!(response.status, StatusCode::OK, "{}", response.text);
    let names = &response.json()["regenerated_credentials"];
    assert_eq!(*names, json!(["/leaf/c"]));
}

/// The number of attempts to write.
const ATTEMPTS: usize = 4;

#[tokio::test]
async fn a_rotation_step_has_the_limit_of_bulk_regeneration() {
    let service = Service::with_certificate_settings(CertificateSettings {
        concatenates_authorities: true,
        ..CertificateSettings::default()
    })
    .await;
    service.storage.store_signed("/root", "/root").await;
    let count = BULK_CERTIFICATES_MAX as usize;
    service
        .storage
        .store_all_signed(leaves(count + 1), "/root")
        .await;
    let id = service.storage.newest("/root").await.credential_id;
    let path = format!("/api/v1/certificates/{id}/regenerate");
    let body = json!({"set_as_transitional": true});
    let response = service.send_json("POST", &path, &body).await;
    assert_eq!(response.status, StatusCode::PAYLOAD_TOO_LARGE);
    assert!(response.error().contains("10000"), "{}", response.text);
    assert_eq!(service.storage.count().await, 2 + count);
    let delete = format!("/api/v1/data?name=/leaf/{count}");
    service.send("DELETE", &delete, "").await;
    service.storage.add_to_sizes(BULK_BYTES_MAX / count);
    let response = service.send_json("POST", &path, &body).await;
    assert_eq!(response.status, StatusCode::PAYLOAD_TOO_LARGE);
    assert!(response.error().contains("256 MiB"), "{}", response.text);
    service.storage.add_to_sizes(0);
    let response = service.send_json("POST", &path, &body).await;
    assert_eq!(response.status, StatusCode::OK, "{}", response.text);
    assert_eq!(service.storage.count().await, 2 + 2 * count);
}

#[tokio::test]
async fn a_refused_bulk_regeneration_reads_no_signed_credentials() {
    let service = Service::new().await;
    service.storage.store_signed("/ca", "/ca").await;
    service.storage.store_signed("/leaf", "/ca").await;
    for path in ["/ca", "/leaf"] {
        let grant = json!({"path": path, "actor": "uaa-client:reader", "operations": ["read"]});
        let granted = service
            .send_json("POST", "/api/v2/permissions", &grant)
            .await;
        assert_eq!(granted.status, 201);
    }
    let mut claims = good_claims();
    claims["client_id"] = json!("reader");
    let token = format!("Bearer {}", trusted_key().sign(&claims));
    let headers = [
        ("content-type", "application/json".to_owned()),
        ("authorization", token),
    ];
    for (keeps_going, status) in [(false, 403), (true, 200)] {
        let body = json!({"signed_by": "/ca", "keep_going": keeps_going}).to_string();
        let reads = service.storage.reads();
        let response = service
            .send_with("POST", BULK_REGENERATE, &headers, body)
            .await;
        assert_eq!(response.status, status, "{}", response.text);
        assert_eq!(service.storage.reads(), reads);
        assert_eq!(response.text.contains("/leaf"), keeps_going);
    }
}
