//! The signer of the certificate: `ca` and `ca_name`.

use keywright_harness::{Server, Text};
use serde_json::{Value, json};

use crate::{
    certificates::Certificate,
    external_certificates::{Signing, authority, authority_for_days, self_signed_leaf},
};

async fn refused(server: &Server, value: Value) -> String {
    server
        .set("/a", "certificate", value)
        .await
        .expect(400)
        .error()
}

#[tokio::test]
async fn a_ca_is_matched_by_its_signature_not_its_name() {
    let server = Server::reused().await;
    let root = authority("root");
    let leaf = root.sign_leaf("leaf");
    let renamed = root.renewed_as("another name");
    let value = json!({"ca": renamed.certificate, "certificate": leaf.certificate});
    server.stored("/a", "certificate", value).await;
}

#[tokio::test]
async fn a_non_ca_is_400_unless_it_is_the_certificate_itself() {
    let server = Server::reused().await;
    let lone = self_signed_leaf("lone");
    let error = refused(&server, json!({"ca": lone.certificate})).await;
    error.assert_contains("ca");
    let other = self_signed_leaf("other");
    refused(
        &server,
        json!({"ca": lone.certificate, "certificate": other.certificate}),
    )
    .await;

    let itself = json!({"ca": lone.certificate, "certificate": lone.certificate});
    server.stored("/a", "certificate", itself).await;
}

#[tokio::test]
async fn ca_name_selects_the_certificate_of_the_stored_ca() {
    let server = Server::reused().await;
    let root = authority("root");
    let leaf = root.sign_leaf("leaf");
    server
        .stored("/Path/Root", "certificate", root.public())
        .await;
    for ca_name in ["/Path/Root", "Path/Root", "/path/ROOT"] {
        let value = json!({"ca_name": ca_name, "certificate": leaf.certificate});
        let response = server.stored("/a", "certificate", value).await;
        let expected = json!({
            "ca": root.certificate, "certificate": leaf.certificate, "private_key": null,
        });
        assert_eq!(response["value"], expected, "{ca_name}");
    }
}

#[tokio::test]
async fn a_ca_name_must_name_a_ca_even_without_a_certificate() {
    let server = Server::reused().await;
    let leaf = authority("root").sign_leaf("leaf");
    let lone = self_signed_leaf("lone");
    server.set_value("/text", "v").await;
    server.stored("/lone", "certificate", lone.public()).await;
    for (ca, status, words) in [
        ("/nowhere", 404, "the CA does not exist"),
        ("/text", 404, "the CA does not exist"),
        ("/lone", 400, "ca_name is not a CA certificate"),
    ] {
        let with_leaf = json!({"ca_name": ca, "certificate": leaf.certificate});
        for value in [with_leaf, json!({"ca_name": ca})] {
            let response = server.set("/a", "certificate", value).await;
            response.expect_error(status, words);
        }
    }
    assert!(server.versions("/a").await.is_empty());
}

#[tokio::test]
async fn a_stored_ca_that_did_not_sign_is_400_with_another_message() {
    let server = Server::reused().await;
    let other = authority("other");
    server.stored("/other", "certificate", other.public()).await;
    let leaf = authority("root").sign_leaf("leaf");
    let by_name = json!({"ca_name": "/other", "certificate": leaf.certificate});
    let by_value = json!({"ca": other.certificate, "certificate": leaf.certificate});
    let actual = refused(&server, by_name).await;
    assert_ne!(actual, refused(&server, by_value).await);
}

#[tokio::test]
async fn only_the_newest_version_of_a_stored_ca_is_tried() {
    let server = Server::reused().await;
    let (old, new) = (authority("root"), authority("root"));
    for root in [&old, &new] {
        server.stored("/root", "certificate", root.public()).await;
    }
    let by_old = old.sign_leaf("leaf");
    refused(
        &server,
        json!({"ca_name": "/root", "certificate": by_old.certificate}),
    )
    .await;
    let by_new = new.sign_leaf("leaf");
    let value = json!({"ca_name": "/root", "certificate": by_new.certificate});
    let response = server.stored("/a", "certificate", value).await;
    assert_eq!(response["value"]["ca"], new.certificate);
}

#[tokio::test]
async fn a_transitional_version_of_a_stored_ca_is_not_tried() {
    let server = Server::reused().await;
    let (active, transitional) = (authority("root"), authority("root"));
    let root = Certificate::set(&server, "/root", active.public()).await;
    Certificate::set(&server, "/root", transitional.public()).await;
    let by_active = active.sign_leaf("leaf").certificate;
    let by_transitional = transitional.sign_leaf("leaf").certificate;
    let by_name = |certificate: &str| json!({"ca_name": "/root", "certificate": certificate});
    root.move_transitional(json!("latest")).await.expect(200);
    let error = refused(&server, by_name(&by_transitional)).await;
    error.assert_contains("ca_name");
    let response = server
        .stored("/a", "certificate", by_name(&by_active))
        .await;
    assert_eq!(response["value"]["ca"], active.certificate);
    // Without the flag, it is the newest version, so it is tried.
    root.move_transitional(Value::Null).await.expect(200);
    refused(&server, by_name(&by_active)).await;
    let response = server
        .stored("/a", "certificate", by_name(&by_transitional))
        .await;
    assert_eq!(response["value"]["ca"], transitional.certificate);
}

#[tokio::test]
async fn a_stored_ca_needs_an_active_version_with_a_certificate() {
    let server = Server::reused().await;
    let root = authority("root");
    let leaf = root.sign_leaf("leaf").certificate;
    let by_name = json!({"ca_name": "/root", "certificate": leaf});
    let without = json!({"private_key": root.private_key});
    Certificate::set(&server, "/root", without).await;
    refused(&server, by_name.clone()).await;
    server.delete("/api/v1/data?name=/root").await.expect(204);
    let stored = root.public();
    let stored = Certificate::set(&server, "/root", stored).await;
    stored.move_transitional(json!("latest")).await.expect(200);
    let response = server.set("/a", "certificate", by_name.clone()).await;
    response.expect_error(404, "the CA does not exist");
    stored.move_transitional(Value::Null).await.expect(200);
    server.stored("/a", "certificate", by_name).await;
}

#[tokio::test]
async fn an_empty_ca_next_to_a_ca_name_is_ignored() {
    let server = Server::reused().await;
    let root = authority("root");
    server.stored("/root", "certificate", root.public()).await;
    for empty in [json!(""), Value::Null] {
        let leaf = root.sign_leaf("leaf").certificate;
        let value = json!({"ca": empty, "ca_name": "/root", "certificate": leaf});
        let response = server.set("/a", "certificate", value).await;
        assert_eq!(response.expect(200).json()["value"]["ca"], root.certificate);
    }
}

#[tokio::test]
async fn an_expired_ca_still_verifies_signatures() {
    let server = Server::reused().await;
    let root = authority_for_days("root", 1);
    let stored = root.public();
    let stored = server.set("/root", "certificate", stored).await;
    assert_eq!(
        stored.expect(200).json()["expiry_date"],
        "2026-01-02T00:00:00Z"
    );
    let leaf = root.sign_leaf("leaf").certificate;
    for value in [
        json!({"ca": root.certificate, "certificate": leaf}),
        json!({"ca_name": "/root", "certificate": leaf}),
    ] {
        server.stored("/a", "certificate", value).await;
    }
}
