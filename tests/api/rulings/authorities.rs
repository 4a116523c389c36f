//! Rows 9 and 15: the subject of a certificate, and the certificates that a CA signed.

#![expect(
    clippy::indexing_slicing,
    reason = "a test ends when what it needs is not there"
)]

use keywright_harness::{Options, Server};
use serde_json::{Value, json};

use crate::{given, made_elsewhere};

/// The names that a CA signs, according to both lists of certificates.
async fn signs(server: &Server, authority: &str) -> Value {
    let one = server
        .get(&format!("/api/v1/certificates?name={authority}"))
        .await
        .expect(200)
        .json();
    let all = server.get("/api/v1/certificates").await.expect(200).json();
    let all = all["certificates"].as_array().cloned().unwrap_or_default();
    let in_all = all.iter().find(|listed| listed["name"] == authority);
    assert_eq!(
        in_all.map(|listed| &listed["signs"]),
        Some(&one["certificates"][0]["signs"])
    );
    one["certificates"][0]["signs"].clone()
}

/// The names in the response to a bulk regeneration, after asserting that the dry run lists the same.
async fn bulk_regenerated(server: &Server, authority: &str) -> Value {
    let body = json!({"signed_by": authority, "dry_run": true});
    let reported = server.post("/api/v1/bulk-regenerate", body).await;
    let done = server.bulk_regenerate(authority).await.expect(200).json();
    assert_eq!(
        reported.expect(200).json()["regenerated_credentials"],
        done["regenerated_credentials"]
    );
    done["regenerated_credentials"].clone()
}

#[tokio::test]
async fn row_09_converge_ignores_case_and_outer_blanks_of_the_subject() {
    let server = Server::start().await;
    let parameters = |common_name: &str, organization: &str| {
        json!({
            "common_name": common_name, "organization": organization, "organization_unit": "Unit",
            "locality": "Town", "state": "Land", "country": "DE",
            "self_sign": true, "key_type": given::QUICK_KEY,
        })
    };
    let first = parameters("web.Example", "Straße AG");
    let first = given::generate(&server, "/a", "certificate", first).await;
    for same in [
        parameters("WEB.example", "STRAßE ag"),
        parameters("  web.Example", "Straße AG "),
    ] {
        let kept = given::generate(&server, "/a", "certificate", same).await;
        assert_eq!(kept["id"], first["id"]);
    }
    let mut folded = parameters("web.example", "straße ag");
    for (field, text) in [
        ("organization_unit", "unit "),
        ("locality", " TOWN"),
        ("state", "lAND"),
        ("country", "de"),
    ] {
        folded[field] = json!(text);
    }
    let kept = given::generate(&server, "/a", "certificate", folded).await;
    assert_eq!(kept["id"], first["id"]);
    for other in [
        parameters("web.Example", "Straße  AG"),
        parameters("web2.Example", "Straße AG"),
    ] {
        let written = given::generate(&server, "/a", "certificate", other).await;
        assert_ne!(written["id"], first["id"]);
    }
}

#[tokio::test]
async fn row_09_converge_folds_the_subject_of_a_set_certificate_too() {
    let server = Server::start().await;
    let made = made_elsewhere::self_signed_leaf("Web.Example");
    let value = json!({"certificate": made.certificate, "private_key": made.private_key});
    let set = given::set(&server, "/a", "certificate", value).await;
    let parameters = json!({
        "common_name": " web.EXAMPLE ", "self_sign": true, "duration": made_elsewhere::DURATION_DAYS,
    });
    let kept = given::generate(&server, "/a", "certificate", parameters.clone()).await;
    assert_eq!(kept["id"], set["id"]);
    let mut other = parameters;
    other["common_name"] = json!("web.examples");
    let written = given::generate(&server, "/a", "certificate", other).await;
    assert_ne!(written["id"], set["id"]);
}

#[tokio::test]
async fn row_15_a_credential_without_a_certificate_is_not_signed() {
    let server = Server::start().await;
    given::generate_certificate(&server, "/root", json!({"is_ca": true})).await;
    given::generate_certificate(&server, "/leaf", json!({"ca": "/root"})).await;
    let without = given::set(
        &server,
        "/without",
        "certificate",
        json!({"ca_name": "/root"}),
    )
    .await;
    assert_eq!(without["value"]["certificate"], Value::Null);
    assert_eq!(signs(&server, "/root").await, json!(["/leaf"]));
    assert_eq!(bulk_regenerated(&server, "/root").await, json!(["/leaf"]));
    assert_eq!(given::versions(&server, "/without").await.len(), 1);
}

#[tokio::test]
async fn row_15_only_versions_with_a_certificate_count() {
    let server = Server::start().await;
    given::generate_certificate(&server, "/root", json!({"is_ca": true})).await;
    // The newest version has no certificate to regenerate.
    given::generate_certificate(&server, "/emptied", json!({"ca": "/root"})).await;
    given::set(
        &server,
        "/emptied",
        "certificate",
        json!({"ca_name": "/root"}),
    )
    .await;
    // The version with the CA's name has no certificate.
    given::set(&server, "/own", "certificate", json!({"ca_name": "/root"})).await;
    given::generate_certificate(&server, "/own", json!({"self_sign": true})).await;
    assert_eq!(bulk_regenerated(&server, "/root").await, json!([]));
    let listed = server.get("/api/v1/certificates?name=/root").await;
    let listed = listed.expect(200).json();
    assert_eq!(listed["certificates"][0]["signs"], json!(["/emptied"]));
}

#[tokio::test]
async fn row_15_a_rotation_adds_no_version_without_a_certificate() {
    let options = Options::default().extra("[certificates]\nconcatenate_cas = true");
    let server = Server::start_with(&options).await;
    given::generate_certificate(&server, "/root", json!({"is_ca": true})).await;
    given::generate_certificate(&server, "/leaf", json!({"ca": "/root"})).await;
    given::set(
        &server,
        "/without",
        "certificate",
        json!({"ca_name": "/root"}),
    )
    .await;
    let root = server.get("/api/v1/certificates?name=/root").await;
    let id = given::id(&root.expect(200).json()["certificates"][0]);
    let regenerate = format!("/api/v1/certificates/{id}/regenerate");
    let body = json!({"set_as_transitional": true});
    server.post(&regenerate, body).await.expect(200);
    assert_eq!(given::versions(&server, "/leaf").await.len(), 2);
    assert_eq!(given::versions(&server, "/without").await.len(), 1);
}
