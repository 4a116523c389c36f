//! CAs and subjects.

use keywright_harness::{Caller, Options, QUICK_KEY, Response, ReusedServer, Server, Text};
use serde_json::{Value, json};

use crate::external_certificates;

// The CA that a generate request names for an existing leaf.

const MODES: [&str; 3] = ["no-overwrite", "converge", "overwrite"];

/// Starts a server with a CA and a leaf below it.
async fn server_with_leaf() -> ReusedServer {
    let server = Server::reused().await;
    let root = json!({"common_name": "root", "is_ca": true, "key_type": "ed25519"});
    server.generated("/root", "certificate", root).await;
    let response = generate_leaf(&server, "converge", "/root").await;
    response.expect(200);
    server
}

async fn generate_leaf(server: &Server, mode: &str, ca: &str) -> Response {
    server
        .generate_in_mode(mode, "/leaf", "certificate", leaf(ca))
        .await
}

fn leaf(ca: &str) -> Value {
    json!({"common_name": "leaf", "ca": ca, "key_type": "ed25519"})
}

async fn assert_refused(server: &Server, ca: &str, status: u16, words: &str) {
    for mode in MODES {
        let error = generate_leaf(server, mode, ca).await.expect(status).error();
        assert!(error.contains(words), "{mode}: {error}");
    }
    assert_eq!(server.versions("/leaf").await.len(), 1);
}

#[tokio::test]
async fn an_absent_ca_or_another_type_is_404_in_every_mode() {
    let server = server_with_leaf().await;
    server.set_value("/text", "v").await;
    server.delete("/api/v1/data?name=/root").await.expect(204);
    for ca in ["/root", "/nowhere", "/text", "/not a name"] {
        assert_refused(&server, ca, 404, "is not a certificate").await;
    }
}

#[tokio::test]
async fn an_unreadable_ca_is_404_in_every_mode() {
    let server = server_with_leaf().await;
    let caller = server.as_client("writer").await;
    server
        .grant("/leaf", caller.actor(), &["read", "write"])
        .await;
    for mode in MODES {
        let refused = generate_as(&caller, mode).await.expect(404).error();
        refused.assert_contains("the CA does not exist");
    }
    server.grant("/root", caller.actor(), &["read"]).await;
    for mode in MODES {
        generate_as(&caller, mode).await.expect(200);
    }
}

async fn generate_as(caller: &Caller, mode: &str) -> Response {
    let body = json!({
        "name": "/leaf", "type": "certificate", "mode": mode, "parameters": leaf("/root"),
    });
    caller.post("/api/v1/data", body).await
}

#[tokio::test]
async fn a_non_ca_certificate_is_400_in_every_mode() {
    let server = server_with_leaf().await;
    let lone = json!({"common_name": "lone", "self_sign": true, "key_type": "ed25519"});
    server.generated("/lone", "certificate", lone).await;
    let refused = "the CA /lone can't sign: its certificate is not a CA certificate";
    assert_refused(&server, "/lone", 400, refused).await;

    let key = server.versions("/lone").await[0]["value"]["private_key"].clone();
    let without_certificate = json!({"private_key": key});
    server
        .stored("/key", "certificate", without_certificate)
        .await;
    let refused = "the CA /key can't sign: its certificate is missing";
    assert_refused(&server, "/key", 400, refused).await;
}

#[tokio::test]
async fn a_leaf_is_kept_while_its_ca_exists() {
    let server = server_with_leaf().await;
    for mode in ["no-overwrite", "converge"] {
        generate_leaf(&server, mode, "/root").await.expect(200);
    }
    assert_eq!(server.versions("/leaf").await.len(), 1);
    let without_key =
        json!({"certificate": server.versions("/root").await[0]["value"]["certificate"]});
    server.stored("/root", "certificate", without_key).await;
    // Nothing is signed, so no key is needed.
    for mode in ["no-overwrite", "converge"] {
        generate_leaf(&server, mode, "/root").await.expect(200);
    }
    let response = generate_leaf(&server, "overwrite", "/root").await;
    response.expect_error(400, "private_key is missing");
}

// The subject of a certificate, and the certificates that a CA signed.

/// Returns the names of the certificates that a CA signed, after asserting that both lists of certificates agree.
async fn signs(server: &Server, authority: &str) -> Value {
    let one = server
        .get_json(&format!("/api/v1/certificates?name={authority}"))
        .await;
    let all = server.get_json("/api/v1/certificates").await;
    let all = all["certificates"].as_array().cloned().unwrap_or_default();
    let in_all = all.iter().find(|listed| listed["name"] == authority);
    let actual = in_all.map(|listed| &listed["signs"]);
    assert_eq!(actual, Some(&one["certificates"][0]["signs"]));
    one["certificates"][0]["signs"].clone()
}

/// Returns the names in the response to a bulk regeneration, after asserting that the dry run lists the same.
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
async fn converge_ignores_case_and_outer_blanks_of_the_subject() {
    let server = Server::reused().await;
    let parameters = |common_name: &str, organization: &str| {
        json!({
            "common_name": common_name, "organization": organization, "organization_unit": "Unit",
            "locality": "Town", "state": "Land", "country": "DE",
            "self_sign": true, "key_type": QUICK_KEY,
        })
    };
    let first = parameters("web.Example", "Straße AG");
    let first = server.generated("/a", "certificate", first).await;
    for same in [
        parameters("WEB.example", "STRAßE ag"),
        parameters("  web.Example", "Straße AG "),
    ] {
        let kept = server.generated("/a", "certificate", same).await;
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
    let kept = server.generated("/a", "certificate", folded).await;
    assert_eq!(kept["id"], first["id"]);
    for other in [
        parameters("web.Example", "Straße  AG"),
        parameters("web2.Example", "Straße AG"),
    ] {
        let written = server.generated("/a", "certificate", other).await;
        assert_ne!(written["id"], first["id"]);
    }
}

#[tokio::test]
async fn converge_folds_the_subject_of_a_set_certificate_too() {
    let server = Server::reused().await;
    let made = external_certificates::self_signed_leaf("Web.Example");
    let set = server.stored("/a", "certificate", made.value()).await;
    let parameters = json!({
        "common_name": " web.EXAMPLE ", "self_sign": true, "duration": external_certificates::DURATION_DAYS,
    });
    let kept = server
        .generated("/a", "certificate", parameters.clone())
        .await;
    assert_eq!(kept["id"], set["id"]);
    let mut other = parameters;
    other["common_name"] = json!("web.examples");
    let written = server.generated("/a", "certificate", other).await;
    assert_ne!(written["id"], set["id"]);
}

#[tokio::test]
async fn a_credential_without_a_certificate_counts_as_unsigned() {
    let server = Server::reused().await;
    server.issued("/root", json!({"is_ca": true})).await;
    server.issued("/leaf", json!({"ca": "/root"})).await;
    let value = json!({"ca_name": "/root"});
    let without = server.stored("/without", "certificate", value).await;
    assert_eq!(without["value"]["certificate"], Value::Null);
    assert_eq!(signs(&server, "/root").await, json!(["/leaf"]));
    assert_eq!(bulk_regenerated(&server, "/root").await, json!(["/leaf"]));
    assert_eq!(server.versions("/without").await.len(), 1);
}

#[tokio::test]
async fn only_versions_with_a_certificate_have_a_signer() {
    let server = Server::reused().await;
    server.issued("/root", json!({"is_ca": true})).await;
    // The newest version has no certificate to regenerate.
    server.issued("/emptied", json!({"ca": "/root"})).await;
    let value = json!({"ca_name": "/root"});
    server.stored("/emptied", "certificate", value).await;
    // The version with the CA's name has no certificate.
    let value = json!({"ca_name": "/root"});
    server.stored("/own", "certificate", value).await;
    server.issued("/own", json!({"self_sign": true})).await;
    assert_eq!(bulk_regenerated(&server, "/root").await, json!([]));
    let listed = server.get_json("/api/v1/certificates?name=/root").await;
    assert_eq!(listed["certificates"][0]["signs"], json!(["/emptied"]));
}

#[tokio::test]
async fn a_rotation_adds_no_version_without_a_certificate() {
    let options = Options::default().extra("[certificates]\nconcatenate_cas = true");
    let server = Server::start_with(&options).await;
    server.issued("/root", json!({"is_ca": true})).await;
    server.issued("/leaf", json!({"ca": "/root"})).await;
    let value = json!({"ca_name": "/root"});
    server.stored("/without", "certificate", value).await;
    server.regenerate_as_transitional("/root").await;
    assert_eq!(server.versions("/leaf").await.len(), 2);
    assert_eq!(server.versions("/without").await.len(), 1);
}
