//! Setting, generating and regenerating. A plugin's normalized parameters are checked against the request: otherwise a plugin
//! could get access to a CA.

use keywright_core::credential::CertificateSettings;
use serde_json::{Value, json};

use crate::{
    fakes::{MALFORMED_CERTIFICATE, SET_DURATION_DAYS},
    harness::Service,
    storage::OtherWriter,
};

/// The path of most requests.
const DATA: &str = "/api/v1/data";

/// Sends a body, and asserts the status.
async fn check(service: &Service, method: &str, path: &str, body: Value, status: u16) {
    let response = service.send_json(method, path, &body).await;
    assert_eq!(
        response.status.as_u16(),
        status,
        "{body}: {}",
        response.text
    );
}

async fn regenerate(service: &Service, name: &str, status: u16) {
    let body = json!({"name": name});
    check(service, "POST", "/api/v1/regenerate", body, status).await;
}

#[tokio::test]
async fn a_credential_deleted_during_generation_is_not_recreated() {
    let service = Service::new().await;
    for (name, credential_type) in [("/p", "password"), ("/c", "certificate")] {
        let generate = json!({"name": name, "type": credential_type, "parameters": {"length": 20}});
        check(&service, "POST", DATA, generate, 200).await;
        service.storage.set_other_writer(OtherWriter::Deletes);
        regenerate(&service, name, 404).await;
        service.storage.set_other_writer(OtherWriter::Idle);
        assert_eq!(service.storage.count().await, 0);
    }
}

#[tokio::test]
async fn regenerating_adds_no_version_to_a_recreated_credential() {
    let service = Service::new().await;
    let generate = json!({"name": "/p", "type": "password", "parameters": {"length": 20}});
    check(&service, "POST", DATA, generate, 200).await;
    service.storage.set_other_writer(OtherWriter::Recreates);
    regenerate(&service, "/p", 404).await;
    assert_eq!(service.storage.count().await, 1);
}

#[tokio::test]
async fn regenerating_succeeds_after_many_concurrent_writes() {
    let service = Service::new().await;
    service.storage.store_signed("/c", "/c").await;
    let writer = OtherWriter::Replaces(&["/c"; 12]);
    service.storage.set_other_writer(writer);
    regenerate(&service, "/c", 200).await;
    assert_eq!(service.storage.count().await, 1 + 12 + 1);
}

/// Returns a service with the CAs `/root` and `/dev`.
async fn service_with_root() -> Service {
    let service = Service::new().await;
    let value = json!({"certificate": "root", "private_key": "k"});
    for name in ["/root", "/dev"] {
        let set = json!({"name": name, "type": "certificate", "value": value});
        check(&service, "PUT", DATA, set, 200).await;
    }
    service
}

#[tokio::test]
async fn a_plugin_that_extends_parameters_is_at_fault() {
    let service = service_with_root().await;
    for (requested, more, status) in [
        (json!({}), json!({}), 200),
        (json!({}), json!({"ca": "/root"}), 500),
        (json!({"ca": ""}), json!({"ca": "/root"}), 500),
        (json!({"ca": "/dev"}), json!({"ca": "/root"}), 500),
        (json!({"ca": "/dev"}), json!({"ca": "/DEV"}), 500),
        (json!({"ca": "/dev"}), json!({"ca": null}), 500),
        (json!({"ca": "dev"}), json!({"ca": "/dev"}), 200),
        (json!({}), json!({"is_ca": true}), 500),
        (json!({"is_ca": "false"}), json!({"is_ca": true}), 500),
        (json!({"is_ca": "true"}), json!({"is_ca": true}), 200),
        (json!({"is_ca": true}), json!({"is_ca": true}), 200),
        (json!({"is_ca": true}), json!({"is_ca": false}), 200),
        (json!({}), json!({"duration": 3_650}), 200),
        (json!({}), json!({"duration": 3_651}), 500),
        (json!({"duration": 4_000}), json!({"duration": 4_000}), 200),
        (
            json!({"duration": 4_000}),
            json!({"duration": 4_000_000_000_u64}),
            500,
        ),
        (json!({"duration": "9"}), json!({"duration": 9}), 200),
        (json!({"duration": "9"}), json!({"duration": 10}), 500),
        (json!({"duration": "P9D"}), json!({"duration": 10}), 500),
        (json!({"duration": 9.5}), json!({"duration": 10}), 500),
        (
            json!({"is_ca": true}),
            json!({"is_ca": true, "key_usage": ["key_cert_sign", "crl_sign"]}),
            200,
        ),
        (
            json!({"is_ca": true}),
            json!({"is_ca": true, "extended_key_usage": ["ocsp_signing"]}),
            500,
        ),
        (
            json!({"is_ca": true, "extended_key_usage": ["ocsp_signing"]}),
            json!({"is_ca": true, "extended_key_usage": ["ocsp_signing"]}),
            200,
        ),
    ] {
        for credential_type in ["certificate", "wireguard"] {
            let mut parameters = requested.clone();
            parameters["more"] = more.clone();
            let name = format!("/{credential_type}");
            let body = json!({
                "name": name, "type": credential_type, "mode": "overwrite", "parameters": parameters,
            });
            check(&service, "POST", DATA, body, status).await;
        }
    }
}

#[tokio::test]
async fn changed_parameters_are_checked_on_regeneration_too() {
    let service = service_with_root().await;
    for (more, status) in [(json!({}), 200), (json!({"ca": "/root"}), 500)] {
        service
            .storage
            .store_generated("/c", &json!({"ca": "/dev", "is_ca": false}), &more)
            .await;
        let id = service.storage.newest("/c").await.credential_id;
        let path = format!("/api/v1/certificates/{id}/regenerate");
        check(&service, "POST", &path, json!({"duration": 9}), status).await;
    }
}

#[tokio::test]
async fn stored_parameters_override_recovered_ones() {
    let service = service_with_root().await;
    let stored = json!({"ca": "/dev", "is_ca": false, "duration": 9});
    for name in ["/signed", "/self-signed"] {
        let mut parameters = stored.clone();
        if name == "/self-signed" {
            parameters["ca"] = Value::Null;
        }
        service
            .storage
            .store_generated(
                name,
                &parameters,
                &json!({"ca": "/root", "is_ca": true, "duration": 4_000_000_000_u64}),
            )
            .await;
        regenerate(&service, name, 200).await;
        let made = service.storage.newest_plaintext(name).await["parameters"].take();
        assert_eq!(made["is_ca"], false);
        assert_eq!(made["duration"], 9);
        assert_eq!(made["ca"], parameters["ca"]);
    }
}

#[tokio::test]
async fn recovering_more_than_was_set_is_reported_as_a_plugin_fault() {
    let service = service_with_root().await;
    let recovered = |more: Value| {
        let mut recovered = json!({"self_sign": true});
        let fields = more.as_object().unwrap().clone();
        recovered.as_object_mut().unwrap().extend(fields);
        json!({"certificate": recovered.to_string()})
    };
    // The fake certificates are CA certificates with this validity in days.
    let days = SET_DURATION_DAYS;
    for (credential_type, more, status) in [
        ("certificate", json!({"is_ca": true, "duration": days}), 200),
        ("certificate", json!({"duration": days + 1}), 500),
        ("wireguard", json!({"is_ca": false, "duration": 3_650}), 200),
        ("wireguard", json!({"is_ca": true}), 500),
        ("wireguard", json!({"duration": 3_651}), 500),
    ] {
        let name = format!("/{credential_type}");
        let set = json!({"name": name, "type": credential_type, "value": recovered(more)});
        check(&service, "PUT", DATA, set, 200).await;
        regenerate(&service, &name, status).await;
    }
    for credential_type in ["certificate", "wireguard"] {
        let name = format!("/{credential_type}");
        let value = recovered(json!({"ca": "/root"}));
        let set = json!({"name": name, "type": credential_type, "value": value});
        check(&service, "PUT", DATA, set, 200).await;
        regenerate(&service, &name, 200).await;
        let made = service.storage.newest_plaintext(&name).await;
        assert_eq!(
            made["parameters"].get("ca"),
            None,
            "the plugin got no access to the root"
        );
    }
}

/// Requests whose result depends on the signing version of a CA.
const REQUESTS: &str = r#"
    POST /api/v1/data {"name": "/leaf", "type": "certificate", "mode": "overwrite", "parameters": {"ca": "/root"}}
    POST /api/v1/data {"name": "/leaf", "type": "certificate", "mode": "converge", "parameters": {"ca": "/root", "duration": 9}}
    POST /api/v1/regenerate {"name": "/leaf"}
    POST /api/v1/certificates/ID/regenerate {}
    POST /api/v1/certificates/ID/versions {"value": {"certificate": "x", "ca_name": "/root"}}
    PUT /api/v1/data {"name": "/leaf", "type": "certificate", "value": {"certificate": "x", "ca_name": "/root"}}
"#;

/// Returns the methods, paths and bodies in a table. `ID` is the id of a certificate.
fn requests(table: &str, id: &str) -> Vec<(String, String, Value)> {
    let table = table.replace("ID", id);
    let requests = table.trim().lines().map(|line| {
        let mut parts = line.trim().splitn(3, ' ').map(str::to_owned);
        let mut part = || parts.next().unwrap();
        let (method, path) = (part(), part());
        (method, path, serde_json::from_str(&part()).unwrap())
    });
    requests.collect()
}

async fn service_with_leaf() -> (Service, String) {
    let service = Service::new().await;
    service.storage.store_signed("/root", "/root").await;
    let generate = json!({"name": "/leaf", "type": "certificate", "parameters": {"ca": "/root"}});
    check(&service, "POST", DATA, generate, 200).await;
    let id = service
        .storage
        .newest("/leaf")
        .await
        .credential_id
        .to_string();
    (service, id)
}

#[tokio::test]
async fn a_ca_replaced_during_a_request_signs_with_its_new_version() {
    let (service, id) = service_with_leaf().await;
    for (method, path, body) in requests(REQUESTS, &id) {
        let root = service.storage.newest("/root").await.id;
        let count = service.storage.count().await;
        service
            .storage
            .set_other_writer(OtherWriter::Replaces(&["/root"]));
        check(&service, &method, &path, body.clone(), 200).await;
        let newest_root = service.storage.newest("/root").await.id;
        assert_ne!(newest_root, root);
        let issuer = service.storage.newest("/leaf").await.attributes.issuer;
        let issuer = issuer.and_then(|issuer| issuer.version_id);
        assert_eq!(issuer, Some(newest_root), "{method} {path} {body}");
        assert_eq!(service.storage.count().await, count + 2);
    }
}

#[tokio::test]
async fn a_constantly_changing_ca_is_a_retryable_error() {
    let (service, id) = service_with_leaf().await;
    let always = OtherWriter::Replaces(&["/root"; 99]);
    service.storage.set_other_writer(always);
    for (method, path, body) in requests(REQUESTS, &id) {
        let leaf = service.storage.newest("/leaf").await.id;
        check(&service, &method, &path, body, 503).await;
        assert_eq!(service.storage.newest("/leaf").await.id, leaf);
    }
}

#[tokio::test]
async fn a_permission_revoked_during_a_request_no_longer_counts() {
    let (service, id) = service_with_leaf().await;
    let import = r#"PUT /api/v1/data {"name": "/imported", "type": "wireguard", "value": {}, "generated_by": "DIGEST", "parameters": {"ca": "/root"}}"#;
    let import = import.replace("DIGEST", &"0".repeat(64));
    let mut count = service.storage.count().await;
    for (method, path, body) in requests(&[REQUESTS, &import].concat(), &id) {
        let revokes = OtherWriter::Revokes("/root");
        service.storage.set_other_writer(revokes);
        let response = service.send_json(&method, &path, &body).await;
        assert!(
            matches!(response.status.as_u16(), 403 | 404),
            "{method} {path} {body}: {}",
            response.text
        );
        assert_eq!(service.storage.count().await, count);
        service.storage.set_other_writer(OtherWriter::Idle);
        service.storage.grant_everything().await;
        check(&service, &method, &path, body, 200).await;
        count += 1;
    }
}

#[tokio::test]
async fn a_permission_revoked_on_the_stored_casing_no_longer_counts() {
    let (service, _) = service_with_leaf().await;
    for path in ["/LEAF", "/root"] {
        service.storage.grant(path).await;
    }
    let count = service.storage.count().await;
    let overwrite = json!({"name": "/LEAF", "type": "certificate", "mode": "overwrite", "parameters": {"ca": "/root"}});
    let revokes = OtherWriter::Revokes("/root");
    service.storage.set_other_writer(revokes);
    check(&service, "POST", DATA, overwrite, 403).await;
    assert_eq!(service.storage.count().await, count);
}

#[tokio::test]
async fn a_permission_revoked_before_another_attempt_no_longer_counts() {
    let service = service_with_root().await;
    let writer = OtherWriter::ReplacesThenRevokes("/new");
    service.storage.set_other_writer(writer);
    let generate =
        json!({"name": "/new", "type": "certificate", "parameters": {"ca": "/dev", "duration": 9}});
    check(&service, "POST", DATA, generate, 403).await;
    assert_eq!(service.storage.count().await, 3);
}

#[tokio::test]
async fn a_permission_revoked_during_a_long_deletion_no_longer_counts() {
    let service = Service::new().await;
    let set = json!({"name": "/long", "type": "value", "value": "a"});
    for _ in 0..101 {
        check(&service, "PUT", DATA, set.clone(), 200).await;
    }
    let revokes = OtherWriter::Revokes("/long");
    service.storage.set_other_writer(revokes);
    check(
        &service,
        "DELETE",
        "/api/v1/data?name=/long",
        json!(null),
        404,
    )
    .await;
    assert_eq!(service.storage.count().await, 100);
}

const STEPS: &str = r#"
    POST /api/v1/certificates/ID/regenerate {"set_as_transitional": true}
    PUT /api/v1/certificates/ID/update_transitional_version {"version": null}
    POST /api/v1/certificates/ID/versions {"value": {"certificate": "x"}, "transitional": true}
    PUT /api/v1/certificates/ID/update_transitional_version {"version": "VERSION"}
    DELETE /api/v1/certificates/ID/versions/VERSION null
"#;

#[tokio::test]
async fn a_permission_revoked_during_a_rotation_step_no_longer_counts() {
    let service = Service::with_certificate_settings(CertificateSettings {
        concatenates_authorities: true,
        ..CertificateSettings::default()
    })
    .await;
    for name in ["/root", "/leaf"] {
        service.storage.store_signed(name, "/root").await;
    }
    let root = service.storage.newest("/root").await;
    let steps = STEPS.replace("VERSION", &root.id.to_string());
    let steps = requests(&steps, &root.credential_id.to_string());
    for ((method, path, body), refused) in steps.into_iter().zip([403, 403, 403, 403, 404]) {
        let count = service.storage.count().await;
        service
            .storage
            .set_other_writer(OtherWriter::Revokes("/root"));
        check(&service, &method, &path, body.clone(), refused).await;
        assert_eq!(
            service.storage.count().await,
            count,
            "{method} {path} {body}"
        );
        service.storage.set_other_writer(OtherWriter::Idle);
        service.storage.grant_everything().await;
        check(&service, &method, &path, body, 200).await;
    }
}

#[tokio::test]
async fn declared_certificates_in_generated_values_are_recorded() {
    let service = Service::new().await;
    let generate = |certificate: Value| {
        let parameters = json!({"declared_certificate": certificate});
        json!({"name": "/w", "type": "wireguard", "mode": "overwrite", "parameters": parameters})
    };
    let all_types = "/api/v1/certificates?all_types=true";
    for (certificate, status, listed) in [
        (json!(MALFORMED_CERTIFICATE), 500, 0),
        (json!("a certificate"), 200, 1),
        (json!(MALFORMED_CERTIFICATE), 500, 1),
        (json!(""), 200, 0),
        (json!(7), 200, 0),
    ] {
        check(&service, "POST", DATA, generate(certificate), status).await;
        let all = service.get(all_types).await.json();
        let all = all["certificates"].as_array().unwrap();
        assert_eq!(all.len(), listed);
        for one in all {
            assert_eq!(one["type"], "wireguard");
            assert_eq!(one["versions"][0]["expiry_date"], "2030-01-01T00:00:00Z");
        }
        let certificates = service.get("/api/v1/certificates").await.json();
        assert_eq!(certificates, json!({"certificates": []}));
    }
    assert_eq!(service.storage.count().await, 3);
}
