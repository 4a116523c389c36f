//! Adding, deleting and flagging versions of a certificate.

use keywright_harness::Server;
use reqwest::Method;
use serde_json::{Value, json};

use super::{Certificate, array, ids, summary, transitional};
use crate::{
    external_certificates::{Signing, another_private_key, authority},
    given,
};

// `POST /api/v1/certificates/{certificate_id}/versions`.

/// Sets the certificate `/a`.
async fn given_certificate(server: &Server) -> Certificate<'_> {
    let value = json!({"certificate": authority("first").certificate});
    Certificate::set(server, "/a", value).await
}

#[tokio::test]
async fn an_added_version_is_stored_unchanged_as_the_newest() {
    let server = Server::reused().await;
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
    let by_id = format!("/api/v1/data/{}", given::id(&version));
    assert_eq!(server.get_json(&by_id).await, version);
}

#[tokio::test]
async fn flags_derive_from_the_certificate_and_generated_is_omitted() {
    let server = Server::reused().await;
    let certificate = given_certificate(&server).await;
    let root = authority("root");
    let leaf = root.sign_leaf("leaf");
    let by_root = json!({"certificate": leaf.certificate, "ca": root.certificate});
    let with_flags = json!({
        "certificate": leaf.certificate, "ca": "", "private_key": "",
        "certificate_authority": true, "self_signed": true, "generated": true, "transitional": true,
    });
    for (value, is_root) in [(root.public(), true), (by_root, false), (with_flags, false)] {
        let body = json!({"value": value});
        let version = certificate.add_version(body).await.expect(200).json();
        assert_eq!(version["certificate_authority"], is_root, "{value}");
        assert_eq!(version["self_signed"], is_root, "{value}");
        let signer = if is_root { "/a" } else { "" };
        assert_eq!(version["transitional"], false, "{value}");
        assert_eq!(version.get("generated"), None, "{value}");
        assert!(version["expiry_date"].is_string(), "{value}");
        assert_eq!(summary(&server, "/a").await["signed_by"], signer, "{value}");
    }
}

#[tokio::test]
async fn ca_name_is_resolved_and_checked_as_on_set() {
    let server = Server::reused().await;
    let certificate = given_certificate(&server).await;
    let root = authority("root");
    Certificate::set(&server, "/Root", root.public()).await;
    let leaf = root.sign_leaf("leaf").certificate;
    let body = json!({"value": {"ca_name": "root", "certificate": leaf}});
    let version = certificate.add_version(body).await.expect(200).json();
    assert_eq!(version["value"]["ca"], root.certificate);
    assert_eq!(version["value"].get("ca_name"), None);
    assert_eq!(summary(&server, "/a").await["signed_by"], "/Root");
    assert_eq!(summary(&server, "/Root").await["signs"], json!(["/a"]));
    let stranger = authority("root").sign_leaf("leaf").certificate;
    let body = json!({"value": {"ca_name": "/root", "certificate": stranger}});
    certificate.add_version(body).await.expect(400).error();
    assert_eq!(certificate.versions().await.len(), 2);
}

#[tokio::test]
async fn only_one_version_may_be_added_as_transitional() {
    let server = Server::reused().await;
    let certificate = given_certificate(&server).await;
    let value = json!({"certificate": authority("next").certificate});
    for flag in [json!(true), json!("true")] {
        let body = json!({"value": value, "transitional": flag});
        let response = certificate.add_version(body.clone()).await;
        let version = response.expect(200).json();
        assert_eq!(version["transitional"], true);
        let before = certificate.versions().await;
        assert_eq!(transitional(&before), [given::id(&version)]);
        let response = certificate.add_version(body).await;
        response.expect_error(400, "transitional");
        assert_eq!(certificate.versions().await, before);
        certificate.move_transitional(Value::Null).await.expect(200);
    }
    let body = json!({"value": value, "transitional": false});
    let version = certificate.add_version(body).await.expect(200).json();
    assert_eq!(version["transitional"], false);
}

const REFUSED: &str = r#"
    400 POST PATH {"value": null} => value
    400 POST PATH {"value": "text"} => value
    400 POST PATH {"value": {}} => certificate
    400 POST PATH {"value": {"ca": PEM}} => certificate is required
    400 POST PATH {"value": {"certificate": "", "private_key": OWN KEY}} => certificate is required
    400 POST PATH {"value": {"ca_name": "/a"}} => certificate is required
    400 POST PATH {"value": {"certificate": 1}} => certificate
    400 POST PATH {"value": {"certificate": "text"}} => certificate
    400 POST PATH {"value": {"certificate": PEM, "ca": OTHER CA}} => ca
    400 POST PATH {"value": {"certificate": PEM, "private_key": OTHER KEY}} => private_key
    422 POST PATH {"value": {"certificate": PEM, "unknown": 1}} => unknown
    400 POST PATH
    400 POST PATH []
    400 POST PATH {} => value
    400 POST PATH {"value": {"certificate": PEM}, "transitional": "maybe"} => transitional
    400 POST PATH {"value": {"certificate": PEM}, "transitional": null} => transitional
    422 POST PATH {"value": {"certificate": PEM}, "metadata": {}} => metadata
    422 POST PATH {"value": {"certificate": PEM}, "unknown": 1} => unknown
    422 POST /api/v1/certificates/no-uuid/versions {"value": {"unknown": 1}} => unknown
"#;

#[tokio::test]
async fn invalid_bodies_are_refused_and_add_no_version() {
    let server = Server::reused().await;
    let certificate = given_certificate(&server).await;
    let root = authority("root");
    let pem = &root.certificate;
    let before = ids(&certificate.versions().await);
    let table = REFUSED
        .replace("PATH", &certificate.path("versions"))
        .replace("PEM", &json!(pem).to_string())
        .replace(
            "OTHER CA",
            &json!(authority("root").certificate).to_string(),
        )
        .replace("OWN KEY", &json!(root.private_key).to_string())
        .replace("OTHER KEY", &json!(another_private_key()).to_string());
    given::assert_refused(&server, &table).await;
    assert_eq!(ids(&certificate.versions().await), before);
}

#[tokio::test]
async fn a_value_over_64_kib_is_413() {
    let server = Server::reused().await;
    let certificate = given_certificate(&server).await;
    let root = authority("root");
    let private_key = format!("{}{}", root.private_key, "\n".repeat(65_536));
    let value = json!({"certificate": root.certificate, "private_key": private_key});
    let body = json!({"value": value});
    let (path, stranger) = (certificate.path("versions"), server.as_client("x").await);
    let response = stranger.send(Method::POST, &path, body.clone()).await;
    response.expect(403).error();
    certificate.add_version(body).await.expect(413).error();
    assert_eq!(certificate.versions().await.len(), 1);
}

// `DELETE /api/v1/certificates/{certificate_id}/versions/{version_id}`.

#[tokio::test]
async fn deleting_a_version_returns_and_removes_it() {
    let server = Server::reused().await;
    let certificate = Certificate::set_times(&server, "/a", 3).await;
    let [newest, middle, oldest] = certificate.versions().await.try_into().unwrap();
    let deleted = certificate.delete_version(&given::id(&middle)).await;
    assert_eq!(deleted.expect(200).json(), middle);
    let actual = certificate.versions().await;
    assert_eq!(actual, [newest.clone(), oldest.clone()]);
    let by_id = format!("/api/v1/data/{}", given::id(&middle));
    server.get(&by_id).await.expect(404);

    let deleted = certificate.delete_version(&given::id(&newest)).await;
    assert_eq!(deleted.expect(200).json(), newest);
    assert_eq!(server.versions("/a").await.first(), Some(&oldest));
    assert_eq!(certificate.versions().await.len(), 1);
    assert_eq!(certificate.current().await, [oldest]);
}

#[tokio::test]
async fn the_last_version_cannot_be_deleted() {
    let server = Server::reused().await;
    let certificate = Certificate::set_times(&server, "/a", 1).await;
    let only = certificate.versions().await;
    for flag in [Value::Null, json!("latest")] {
        certificate.move_transitional(flag).await.expect(200);
        let response = certificate.delete_version(&given::id(&only[0])).await;
        response.expect(400).error();
        assert_eq!(ids(&certificate.versions().await), ids(&only));
    }
    server.delete("/api/v1/data?name=/a").await.expect(204);
}

#[tokio::test]
async fn an_absent_version_or_one_of_another_credential_is_404() {
    let server = Server::reused().await;
    let certificate = Certificate::set_times(&server, "/a", 3).await;
    let other = Certificate::set_times(&server, "/other", 2).await;
    let value = server.set_value("/value", "text").await;
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
        let response = certificate.delete_version(&version).await;
        let error = response.expect(404).error();
        let names_version = error.contains("no version with this id");
        assert_eq!(names_version, version.len() == 36, "{version}: {error}");
    }
    assert_eq!(certificate.versions().await.len(), 2);
    assert_eq!(other.versions().await.len(), 2);
    assert_eq!(server.versions("/value").await, [value]);
}

#[tokio::test]
async fn deleting_the_transitional_version_allows_another() {
    let server = Server::reused().await;
    let certificate = Certificate::set_times(&server, "/a", 1).await;
    let body = json!({"value": authority("next").public(), "transitional": true});
    let response = certificate.add_version(body.clone()).await;
    let first = response.expect(200).json();
    let deleted = certificate.delete_version(&given::id(&first)).await;
    assert_eq!(deleted.expect(200).json(), first);
    let second = certificate.add_version(body).await.expect(200).json();
    let flagged = transitional(&certificate.versions().await);
    assert_eq!(flagged, [given::id(&second)]);
}

// `PUT /api/v1/certificates/{certificate_id}/update_transitional_version`.

/// Sets a certificate this many times. Returns it with the ids of its versions, oldest first.
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
    let server = Server::reused().await;
    let (certificate, versions) = with_versions(&server, "/a", 3).await;
    let at = |indices: &[usize]| -> Vec<String> {
        indices
            .iter()
            .map(|index| versions[*index].clone())
            .collect()
    };
    for (moved, responded) in [
        (json!(versions[0]), at(&[2, 0])),
        (json!(versions[1]), at(&[2, 1])),
        (json!(versions[1]), at(&[2, 1])),
        (json!(versions[2]), at(&[1, 2])),
        (Value::Null, at(&[2])),
        (Value::Null, at(&[2])),
        (json!("latest"), at(&[1, 2])),
    ] {
        let response = certificate.move_transitional(moved.clone()).await;
        let current = array(&response.expect(200));
        assert_eq!(ids(&current), responded, "{moved}");
        // Only the second version in the response has the flag.
        let all = certificate.versions().await;
        assert_eq!(transitional(&all), responded[1..], "{moved}");
        assert_eq!(certificate.current().await, current, "{moved}");
        assert!(current[0]["value"]["private_key"].is_string());
    }
    assert_eq!(certificate.versions().await.len(), 3);
}

#[tokio::test]
async fn latest_means_the_newest_version_with_a_certificate() {
    let server = Server::reused().await;
    let (certificate, versions) = with_versions(&server, "/a", 2).await;
    let without = json!({"private_key": authority("x").private_key});
    let newest = server.stored("/a", "certificate", without.clone()).await;
    let response = certificate.move_transitional(json!("latest")).await;
    let current = ids(&array(&response.expect(200)));
    assert_eq!(current, [given::id(&newest), versions[1].clone()]);

    let bare = Certificate::set(&server, "/bare", without).await;
    let response = bare.move_transitional(json!("latest")).await;
    response.expect(400).error();
    assert!(transitional(&bare.versions().await).is_empty());
}

#[tokio::test]
async fn a_version_of_another_certificate_cannot_be_transitional() {
    let server = Server::reused().await;
    let (certificate, versions) = with_versions(&server, "/a", 2).await;
    let response = certificate.move_transitional(json!(versions[0])).await;
    response.expect(200);
    let (other, others) = with_versions(&server, "/other", 1).await;
    let value = server.set_value("/value", "text").await;
    let before = certificate.versions().await;
    let unknown = "8ffd2a43-0ba6-44cf-8b55-e2e9ba2cb9e9";
    for version in given::each(json!([
        others[0],
        other.id,
        certificate.id,
        value["id"],
        unknown,
        "Latest",
        "null",
        "x",
        ""
    ])) {
        let response = certificate.move_transitional(version.clone()).await;
        response.expect_error(400, "version");
        assert_eq!(certificate.versions().await, before, "{version}");
    }
    assert!(transitional(&other.versions().await).is_empty());
}

#[tokio::test]
async fn only_a_valid_or_missing_version_moves_the_flag() {
    let server = Server::reused().await;
    let (certificate, versions) = with_versions(&server, "/a", 2).await;
    let response = certificate.move_transitional(json!(versions[0])).await;
    response.expect(200);
    let table = r#"
        400 PUT PATH {"version": 1} => version
        400 PUT PATH {"version": true} => version
        400 PUT PATH {"version": []} => version
        422 PUT PATH {"version": null, "unknown": 1} => unknown
        400 PUT PATH
        400 PUT PATH []
        400 PUT PATH null
    "#;
    let path = certificate.path("update_transitional_version");
    given::assert_refused(&server, &table.replace("PATH", &path)).await;
    let flagged = transitional(&certificate.versions().await);
    assert_eq!(flagged, [versions[0].clone()]);
    // A missing version clears the flag, as Spring CredHub expects.
    for _ in 0..2 {
        let active = server.put(&path, json!({})).await.expect(200);
        assert_eq!(ids(&array(&active)), versions[1..]);
        assert!(transitional(&certificate.versions().await).is_empty());
    }
}
