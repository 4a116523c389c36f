//! `POST /api/v1/certificates/{certificate_id}/versions`.

use keywright_harness::Server;
use serde_json::{Value, json};

use super::{Certificate, ids, summary, transitional};
use crate::{
    given,
    made_elsewhere::{another_private_key, authority, self_signed_leaf},
};

/// A set certificate `/a`.
async fn given_certificate(server: &Server) -> Certificate<'_> {
    let value = json!({"certificate": authority("first").certificate});
    Certificate::set(server, "/a", value).await
}

#[tokio::test]
async fn a_version_is_added_as_it_is_and_is_the_newest() {
    let server = Server::start().await;
    let certificate = given_certificate(&server).await;
    let root = authority("root");
    let value = json!({
        "ca": root.certificate, "certificate": root.certificate, "private_key": root.private_key,
    });
    let body = json!({"value": value});
    let version = certificate.add_version(body).await.expect(200).json();
    assert_eq!(version["type"], "certificate");
    assert_eq!(version["name"], "/a");
    assert_eq!(version["value"], value);
    assert_eq!(version["metadata"], Value::Null);
    assert_eq!(version["transitional"], false);
    let versions = certificate.versions().await;
    assert_eq!((versions.len(), &versions[0]), (2, &version));
    let by_id = server
        .get(&format!("/api/v1/data/{}", given::id(&version)))
        .await;
    assert_eq!(by_id.expect(200).json(), version);
}

#[tokio::test]
async fn flags_come_from_the_certificate_and_the_origin_is_unknown() {
    let server = Server::start().await;
    let certificate = given_certificate(&server).await;
    let root = authority("root");
    let leaf = root.sign_leaf("leaf");
    for (value, is_authority, is_self_signed, signer) in [
        (json!({"certificate": root.certificate}), true, true, "/a"),
        (
            json!({"certificate": leaf.certificate, "ca": root.certificate}),
            false,
            false,
            "",
        ),
        (
            json!({
                "certificate": leaf.certificate, "ca": "", "private_key": "",
                "certificate_authority": true, "self_signed": true, "generated": true, "transitional": true,
            }),
            false,
            false,
            "",
        ),
    ] {
        let body = json!({"value": value});
        let version = certificate.add_version(body).await.expect(200).json();
        assert_eq!(version["certificate_authority"], is_authority, "{value}");
        assert_eq!(version["self_signed"], is_self_signed, "{value}");
        assert_eq!(version["transitional"], false, "{value}");
        assert_eq!(version.get("generated"), None, "{value}");
        assert!(version["expiry_date"].is_string(), "{value}");
        assert_eq!(summary(&server, "/a").await["signed_by"], signer, "{value}");
    }
}

#[tokio::test]
async fn ca_name_is_resolved_and_checked_as_on_set() {
    let server = Server::start().await;
    let certificate = given_certificate(&server).await;
    let root = authority("root");
    Certificate::set(&server, "/Root", json!({"certificate": root.certificate})).await;
    Certificate::set(
        &server,
        "/leaf",
        json!({"certificate": self_signed_leaf("x").certificate}),
    )
    .await;
    let leaf = root.sign_leaf("leaf").certificate;
    let body = json!({"value": {"ca_name": "root", "certificate": leaf}});
    let version = certificate.add_version(body).await.expect(200).json();
    assert_eq!(version["value"]["ca"], root.certificate);
    assert_eq!(version["value"].get("ca_name"), None);
    assert_eq!(summary(&server, "/a").await["signed_by"], "/Root");
    assert_eq!(summary(&server, "/Root").await["signs"], json!(["/a"]));
    let stranger = authority("root").sign_leaf("leaf").certificate;
    for (value, status) in [
        (json!({"ca_name": "/absent", "certificate": leaf}), 404),
        (json!({"ca_name": "/leaf", "certificate": leaf}), 400),
        (json!({"ca_name": "/root", "certificate": stranger}), 400),
        (
            json!({"ca_name": "/root", "ca": root.certificate, "certificate": leaf}),
            400,
        ),
    ] {
        let answer = certificate.add_version(json!({"value": value})).await;
        answer.expect(status).error();
    }
    assert_eq!(certificate.versions().await.len(), 2);
}

#[tokio::test]
async fn only_one_version_may_be_added_as_transitional() {
    let server = Server::start().await;
    let certificate = given_certificate(&server).await;
    let value = json!({"certificate": authority("next").certificate});
    for asked in [json!(true), json!("true")] {
        let body = json!({"value": value, "transitional": asked});
        let version = certificate
            .add_version(body.clone())
            .await
            .expect(200)
            .json();
        assert_eq!(version["transitional"], true);
        let before = certificate.versions().await;
        assert_eq!(transitional(&before), [given::id(&version)]);
        let error = certificate.add_version(body).await.expect(400).error();
        assert!(error.contains("transitional"), "{error}");
        assert_eq!(certificate.versions().await, before);
        certificate.move_transitional(Value::Null).await.expect(200);
    }
    let body = json!({"value": value, "transitional": false});
    let version = certificate.add_version(body).await.expect(200).json();
    assert_eq!(version["transitional"], false);
}

#[tokio::test]
async fn each_mistake_has_its_status_and_writes_nothing() {
    let server = Server::start().await;
    let certificate = given_certificate(&server).await;
    let root = authority("root");
    let pem = &root.certificate;
    let before = ids(&certificate.versions().await);
    for (body, status, named) in [
        (json!({}), 400, "value"),
        (json!({"value": null}), 400, "value"),
        (json!({"value": "text"}), 400, "value"),
        (json!({"value": {}}), 400, "certificate"),
        (
            json!({"value": {"ca": pem}}),
            400,
            "certificate is required",
        ),
        (
            json!({"value": {"certificate": "", "private_key": root.private_key}}),
            400,
            "certificate is required",
        ),
        (
            json!({"value": {"ca_name": "/a"}}),
            400,
            "certificate is required",
        ),
        (json!({"value": {"certificate": 1}}), 400, "certificate"),
        (
            json!({"value": {"certificate": "text"}}),
            400,
            "certificate",
        ),
        (
            json!({"value": {"certificate": pem, "ca": authority("root").certificate}}),
            400,
            "ca",
        ),
        (
            json!({"value": {"certificate": pem, "private_key": another_private_key()}}),
            400,
            "private_key",
        ),
        (
            json!({"value": {"certificate": pem, "unknown": 1}}),
            422,
            "unknown",
        ),
        (
            json!({"value": {"certificate": pem}, "unknown": 1}),
            422,
            "unknown",
        ),
        (
            json!({"value": {"certificate": pem}, "metadata": {}}),
            422,
            "metadata",
        ),
        (
            json!({"value": {"certificate": pem}, "transitional": "maybe"}),
            400,
            "transitional",
        ),
        (
            json!({"value": {"certificate": pem}, "transitional": null}),
            400,
            "transitional",
        ),
        (json!([]), 400, ""),
    ] {
        let answer = certificate.add_version(body.clone()).await;
        assert!(answer.expect(status).error().contains(named), "{body}");
    }
    assert_eq!(ids(&certificate.versions().await), before);
}

#[tokio::test]
async fn an_added_version_is_regenerated_like_a_set_one() {
    let server = Server::start().await;
    let certificate = given_certificate(&server).await;
    let root = authority("next");
    let body = json!({"value": {"certificate": root.certificate}});
    certificate.add_version(body).await.expect(200);
    let version = certificate.regenerate(json!({})).await.expect(200).json();
    assert_eq!(version["generated"], true);
    assert_eq!(version["certificate_authority"], true);
    let leaf = json!({"value": {"certificate": root.sign_leaf("leaf").certificate}});
    certificate.add_version(leaf).await.expect(200);
    certificate.regenerate(json!({})).await.expect(400).error();
}

#[tokio::test]
async fn a_value_over_64_kib_is_413() {
    let server = Server::start().await;
    let certificate = given_certificate(&server).await;
    let root = authority("root");
    let private_key = format!("{}{}", root.private_key, "\n".repeat(65_536));
    let value = json!({"certificate": root.certificate, "private_key": private_key});
    let answer = certificate.add_version(json!({"value": value})).await;
    answer.expect(413).error();
    assert_eq!(certificate.versions().await.len(), 1);
}
