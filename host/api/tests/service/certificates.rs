//! Certificates, and CAs that get another version while they sign. Tests against a running server can't provoke or observe these
//! cases.

use std::sync::atomic::Ordering;

use serde_json::{Value, json};
use uuid::Uuid;

use crate::{
    credentials::{DATA, check},
    harness::{Response, Service, good_claims, trusted_key},
};

const CERTIFICATES: &str = "/api/v1/certificates";

#[tokio::test]
async fn both_ca_versions_are_stored_with_certificates_in_rotation() {
    let service = Service::new();
    let root = Certificate::set(
        &service,
        "/root",
        &json!({"certificate": "one", "private_key": "k"}),
    )
    .await;
    root.generate_leaf("/before").await;
    assert_eq!(
        service.memory.newest_plaintext("/before").get("trusted_ca"),
        None
    );

    let second = json!({
        "value": {"certificate": "two", "private_key": "k"}, "transitional": true,
    });
    assert_status(&root.send("POST", "versions", &second).await, 200);
    let leaf = root.generate_leaf("/leaf").await;
    assert_eq!(
        service.memory.newest_plaintext("/leaf")["trusted_ca"],
        "two"
    );

    let signed_by_transitional = json!({"allow_transitional_parent_to_sign": true});
    assert_status(
        &leaf
            .send("POST", "regenerate", &signed_by_transitional)
            .await,
        200,
    );
    assert_eq!(
        service.memory.newest_plaintext("/leaf")["trusted_ca"],
        "one"
    );

    let first = json!({"version": root.version_ids().await[1]});
    assert_status(
        &root
            .send("PUT", "update_transitional_version", &first)
            .await,
        200,
    );
    for body in [json!({}), signed_by_transitional] {
        assert_status(&leaf.send("POST", "regenerate", &body).await, 200);
        assert_eq!(
            service.memory.newest_plaintext("/leaf")["trusted_ca"],
            "one",
            "{body}"
        );
    }

    let none = json!({"version": null});
    assert_status(
        &root.send("PUT", "update_transitional_version", &none).await,
        200,
    );
    assert_status(&leaf.send("POST", "regenerate", &json!({})).await, 200);
    assert_eq!(
        service.memory.newest_plaintext("/leaf").get("trusted_ca"),
        None
    );
}

#[tokio::test]
async fn credentials_of_other_types_are_not_certificates() {
    let service = Service::new();
    let set = json!({"name": "/p", "type": "password", "value": "x"});
    for _ in 0..2 {
        assert_status(&service.send_json("PUT", DATA, &set).await, 200);
    }
    let password = Certificate {
        service: &service,
        id: service.memory.credential_id("/p"),
    };
    let versions = service.get("/api/v1/data?name=/p").await.json();
    let version = versions["data"][0]["id"].as_str().unwrap().to_owned();
    let new = json!({"value": {"certificate": "x"}});
    for (method, below, body) in [
        ("GET", "versions".to_owned(), Value::Null),
        ("POST", "versions".to_owned(), new),
        ("DELETE", format!("versions/{version}"), Value::Null),
        ("POST", "regenerate".to_owned(), json!({})),
        (
            "PUT",
            "update_transitional_version".to_owned(),
            json!({"version": version}),
        ),
        (
            "PUT",
            "update_transitional_version".to_owned(),
            json!({"version": null}),
        ),
    ] {
        let response = password.send(method, &below, &body).await;
        assert_eq!(
            response.status.as_u16(),
            404,
            "{method} {below}: {}",
            response.text
        );
        response.error();
    }
    assert_eq!(service.get("/api/v1/data?name=/p").await.json(), versions);
}

#[tokio::test]
async fn a_recreated_credential_gets_no_version_of_the_old_one() {
    let service = Service::new();
    let generate = json!({"name": "/c", "type": "certificate", "parameters": {"duration": 9}});
    assert_status(&service.send_json("POST", DATA, &generate).await, 200);
    let is_recreated = &service.memory.is_recreated_before_append;
    is_recreated.store(true, std::sync::atomic::Ordering::SeqCst);
    let new = json!({"value": {"certificate": "x"}});
    for (below, body) in [("regenerate", json!({})), ("versions", new)] {
        let id = service.memory.credential_id("/c");
        let certificate = Certificate {
            service: &service,
            id,
        };
        assert_status(&certificate.send("POST", below, &body).await, 404);
        assert_ne!(service.memory.credential_id("/c"), id, "{below}");
    }
    let versions = service.get("/api/v1/data?name=/c").await.json();
    assert_eq!(versions["data"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn an_unavailable_database_is_503_everywhere() {
    let service = Service::new();
    let root = Certificate::set(&service, "/root", &json!({"certificate": "one"})).await;
    service
        .memory
        .is_unavailable
        .store(true, std::sync::atomic::Ordering::SeqCst);
    let new = json!({"value": {"certificate": "x"}});
    for (method, below, body) in [
        ("GET", "versions", Value::Null),
        ("POST", "versions", new),
        (
            "DELETE",
            "versions/8ffd2a43-0ba6-44cf-8b55-e2e9ba2cb9e9",
            Value::Null,
        ),
        ("POST", "regenerate", json!({})),
        (
            "PUT",
            "update_transitional_version",
            json!({"version": null}),
        ),
    ] {
        assert_status(&root.send(method, below, &body).await, 503);
    }
    assert_status(&service.get(CERTIFICATES).await, 503);
    assert_status(&service.get("/api/v1/certificates?name=/root").await, 503);
}

#[tokio::test]
async fn a_regeneration_without_body_needs_no_media_type() {
    let service = Service::new();
    let generate = json!({"name": "/c", "type": "certificate", "parameters": {"duration": 9}});
    assert_status(&service.send_json("POST", DATA, &generate).await, 200);
    let path = format!(
        "{CERTIFICATES}/{}/regenerate",
        service.memory.credential_id("/c")
    );
    for (media_type, body, status) in [
        ("application/json", "", 200),
        ("text/plain", "", 200),
        ("application/json", "{}", 200),
        ("text/plain", "{}", 400),
        ("application/json", " ", 400),
        ("application/json", "null", 400),
        ("application/json", "[]", 400),
    ] {
        let token = service.token();
        let headers = [
            ("authorization", token),
            ("content-type", media_type.to_owned()),
        ];
        let response = service.send_with("POST", &path, &headers, body).await;
        assert_eq!(
            response.status.as_u16(),
            status,
            "{media_type} {body:?}: {}",
            response.text
        );
    }
}

/// A certificate of a service, by the id of its credential.
struct Certificate<'a> {
    service: &'a Service,
    id: Uuid,
}

impl<'a> Certificate<'a> {
    async fn set(service: &'a Service, name: &str, value: &Value) -> Self {
        let set = json!({"name": name, "type": "certificate", "value": value});
        assert_status(&service.send_json("PUT", DATA, &set).await, 200);
        Self {
            service,
            id: service.memory.credential_id(name),
        }
    }

    /// Generates a certificate signed by this one, which has the name `/root`.
    async fn generate_leaf(&self, name: &str) -> Self {
        let parameters = json!({"ca": "/root"});
        let generate = json!({"name": name, "type": "certificate", "parameters": parameters});
        assert_status(&self.service.send_json("POST", DATA, &generate).await, 200);
        Self {
            service: self.service,
            id: self.service.memory.credential_id(name),
        }
    }

    async fn send(&self, method: &str, below: &str, body: &Value) -> Response {
        let path = format!("{CERTIFICATES}/{}/{below}", self.id);
        self.service.send_json(method, &path, body).await
    }

    /// Returns the ids of its versions, newest first.
    async fn version_ids(&self) -> Vec<String> {
        let path = format!("{CERTIFICATES}/{}/versions", self.id);
        let versions = self.service.get(&path).await.json();
        let ids = versions.as_array().unwrap().iter();
        ids.map(|version| version["id"].as_str().unwrap().to_owned())
            .collect()
    }
}

fn assert_status(response: &Response, status: u16) {
    assert_eq!(response.status.as_u16(), status, "{}", response.text);
}

#[tokio::test]
async fn a_refused_bulk_regeneration_reads_no_signed_credentials() {
    let service = Service::new();
    service.memory.store_signed("/ca", "/ca");
    service.memory.store_signed("/leaf", "/ca");
    let grant = json!({"path": "/ca", "actor": "uaa-client:reader", "operations": ["read"]});
    let granted = service
        .send_json("POST", "/api/v2/permissions", &grant)
        .await;
    assert_eq!(granted.status, 201);
    let mut claims = good_claims();
    claims["client_id"] = json!("reader");
    let token = format!("Bearer {}", trusted_key().sign(&claims));
    let headers = [
        ("content-type", "application/json".to_owned()),
        ("authorization", token),
    ];
    let body = json!({"signed_by": "/ca"}).to_string();
    let reads = service.memory.reads();
    let response = service
        .send_with("POST", "/api/v1/bulk-regenerate", &headers, body)
        .await;
    assert_eq!(response.status, 403, "{}", response.text);
    assert_eq!(service.memory.reads(), reads);
}

/// Returns requests whose result depends on the signing version of a CA.
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
