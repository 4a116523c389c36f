//! Requests of standard clients, verbatim, and the parts of responses that they read.

use keywright_harness::Server;
use reqwest::{Method, header};
use serde_json::json;

use crate::given;

#[tokio::test]
async fn an_export_reads_all_names_and_then_each_current_version() {
    let server = Server::reused().await;
    server.set_value("/a/value", "v").await;
    server.generated("/b/user", "user", json!({})).await;
    server.generated("/c/ssh", "ssh", json!({})).await;
    let names = server.found_names("path=").await;
    assert_eq!(names.len(), 3);
    for name in names {
        let path = format!(
            "/api/v1/data?current=true&name={}",
            name.replace('/', "%2F")
        );
        let versions = given::versions_in(&server.get(&path).await.expect(200));
        let mut body = json!({});
        for field in ["name", "type", "value", "metadata"] {
            body[field] = versions[0][field].clone();
        }
        let computed = ["password_hash", "public_key_fingerprint"];
        if let Some(value) = body["value"].as_object_mut() {
            value.retain(|field, _| !computed.contains(&field.as_str()));
        }
        let set = server.put("/api/v1/data", body).await.expect(200).json();
        assert_eq!(set["name"], versions[0]["name"]);
    }
}

/// An export replaces `ca` with the CA's name, unless `signed_by` is empty or the certificate's own name.
#[tokio::test]
async fn exported_certificates_are_imported_with_their_ca_names() {
    let server = Server::reused().await;
    for (name, ca) in [("/root", ""), ("/middle", "/root"), ("/leaf", "/middle")] {
        let parameters = json!({
            "common_name": name, "is_ca": name != "/leaf", "ca": ca, "key_type": "ecdsa-p256",
        });
        server.generated(name, "certificate", parameters).await;
    }
    let mut exported = Vec::new();
    for name in ["/root", "/middle", "/leaf"] {
        let path = format!("/api/v1/data?current=true&name={name}");
        let mut value = given::versions_in(&server.get(&path).await)[0]["value"].clone();
        let path = format!("/api/v1/certificates/?name={name}");
        let summary = server.get_json(&path).await;
        let signed_by = summary["certificates"][0]["signed_by"].clone();
        if ![json!(""), json!(name)].contains(&signed_by) {
            value.as_object_mut().unwrap().remove("ca");
            value["ca_name"] = signed_by;
        }
        exported.push((name, value));
    }
    for (name, _) in &exported {
        let path = format!("/api/v1/data?name={name}");
        server.delete(&path).await.expect(204);
    }
    for (name, value) in exported {
        server.stored(name, "certificate", value).await;
    }
    let summaries = server.get_json("/api/v1/certificates/").await;
    let signers: Vec<_> = summaries["certificates"]
        .as_array()
        .unwrap()
        .iter()
        .map(|summary| (summary["name"].clone(), summary["signed_by"].clone()))
        .collect();
    let expected = [
        ("/leaf", "/middle"),
        ("/middle", "/root"),
        ("/root", "/root"),
    ];
    assert_eq!(signers, expected.map(|(name, ca)| (json!(name), json!(ca))));
    let body = json!({"signed_by": "/root"});
    let response = server.post("/api/v1/bulk-regenerate", body).await;
    let regenerated = json!({"regenerated_credentials": ["/leaf", "/middle"]});
    assert_eq!(response.expect(200).json(), regenerated);
}

#[tokio::test]
async fn a_delete_responds_204_without_a_body() {
    let server = Server::reused().await;
    server.set_value("/a", "v").await;
    let response = server.delete("/api/v1/data?name=%2Fa").await.expect(204);
    assert_eq!(
        (response.body.as_str(), response.header("content-type")),
        ("", None)
    );
}

#[tokio::test]
async fn a_client_may_name_the_media_types_it_accepts() {
    let server = Server::reused().await;
    server.set_value("/a", "v").await;
    for accepted in [
        "application/json",
        "application/json, application/*+json",
        "*/*",
    ] {
        let request = server
            .authorized(Method::GET, "/api/v1/data?name=/a")
            .header(header::ACCEPT, accepted);
        server.send(request).await.expect(200);
    }
}
