//! Values that are set or generated, their metadata and interpolated documents occur in no log or database file. Requests
//! of every kind leave no secret in the audit trail, in either format.

use keywright_harness::{Options, Server, TestCertificate};
use reqwest::Method;
use serde_json::{Value, json};

use super::{Canaries, assert_absent_from_files};

#[tokio::test]
async fn set_values_are_in_no_log_or_database_file() {
    let server = Server::start().await;
    let mut canaries = Canaries::default();
    let certificate = TestCertificate::root(&canaries.plant("the subject of a certificate"));
    let (pem, key) = (certificate.certificate, certificate.private_key);
    canaries.watch("the certificate", pem.lines().nth(2).unwrap());
    canaries.watch(
        "the private key of a certificate",
        key.lines().nth(1).unwrap(),
    );
    let mut plant = |source: &str| canaries.plant(source);
    let json_key = plant("a key of a json");
    let nested_key = plant("a nested key of a json");
    let values = [
        ("value", json!(plant("a value"))),
        ("password", json!(plant("a password"))),
        (
            "json",
            json!({json_key: plant("a json"), "a": [{nested_key: plant("a nested json")}]}),
        ),
        (
            "user",
            json!({"username": plant("a username"), "password": plant("a user's password")}),
        ),
        (
            "rsa",
            json!({"public_key": plant("rsa public"), "private_key": plant("rsa private")}),
        ),
        (
            "ssh",
            json!({"public_key": plant("ssh public"), "private_key": plant("ssh private")}),
        ),
        (
            "certificate",
            json!({"ca": "", "certificate": pem, "private_key": key}),
        ),
    ];
    for (credential_type, value) in values {
        let metadata_key = canaries.plant("a key of metadata");
        let body = json!({
            "name": format!("/marker/{credential_type}"),
            "type": credential_type,
            "value": value,
            "metadata": {metadata_key: canaries.plant("metadata")},
        });
        let version = server.put("/api/v1/data", body).await.expect(200).json();
        canaries.watch_generated("a set value", &version["value"]);
    }
    read_everything(&server, "/marker").await;
    assert_absent_from_files(server, &canaries, "/marker/value").await;
}

#[tokio::test]
async fn generated_values_are_in_no_log_or_database_file() {
    let server = Server::start().await;
    let mut canaries = Canaries::default();
    let mut plant = |source: &str| canaries.plant(source);
    let dns_name = format!("{}.example.org", plant("an alternative name"));
    let certificate = json!({
        "common_name": plant("common_name"),
        "organization": plant("organization"),
        "organization_unit": plant("organization_unit"),
        "locality": plant("locality"),
        "state": plant("state"),
        "alternative_names": [dns_name],
        "is_ca": true,
    });
    let requests = [
        ("password", json!({"length": 40})),
        ("user", json!({"username": plant("parameters.username")})),
        ("rsa", json!({})),
        ("ssh", json!({"ssh_comment": plant("ssh_comment")})),
        ("certificate", certificate),
    ];
    for (credential_type, parameters) in requests {
        let name = format!("/marker/{credential_type}");
        for mode in ["converge", "no-overwrite", "overwrite"] {
            let body = json!({
                "name": name,
                "type": credential_type,
                "mode": mode,
                "parameters": parameters,
                "metadata": {"note": canaries.plant("the metadata of a generate")},
            });
            let version = server.post("/api/v1/data", body).await.expect(200).json();
            canaries.watch_generated(credential_type, &version["value"]);
        }
        let body = json!({"name": name, "metadata": canaries.plant("metadata of regenerate")});
        let version = server
            .post("/api/v1/regenerate", body)
            .await
            .expect(200)
            .json();
        canaries.watch_generated(credential_type, &version["value"]);
    }
    let user_canary = canaries.plant("value.username");
    let body = json!({"name": "/marker/u", "type": "user", "value": {"username": user_canary}});
    server.post("/api/v1/data", body).await.expect(200);
    let leaf = json!({"common_name": canaries.plant("a leaf"), "ca": "/marker/certificate"});
    let leaf = server.generated("/marker/leaf", "certificate", leaf).await;
    canaries.watch_generated("a leaf", &leaf["value"]);
    read_everything(&server, "/marker").await;
    assert_absent_from_files(server, &canaries, "/marker/password").await;
}

#[tokio::test]
async fn interpolated_documents_are_in_no_log_or_database_file() {
    let server = Server::start().await;
    let mut canaries = Canaries::default();
    let value = json!({"password": canaries.plant("a referenced value")});
    server.stored("/marker/json", "json", value.clone()).await;
    let document = json!({
        canaries.plant("a service's name"): [
            {"name": canaries.plant("a binding's name"), "credentials": {"store-ref": "/marker/json"}},
            {"credentials": {"password": canaries.plant("a value in clear")}},
        ],
    });
    let response = server
        .post("/api/v1/interpolate", document)
        .await
        .expect(200);
    response.assert_contains(&value.to_string());
    assert_absent_from_files(server, &canaries, "/marker/json").await;
}

/// Reads all versions of all credentials with every endpoint.
async fn read_everything(server: &Server, path: &str) {
    let found = server.get_json(&format!("/api/v1/data?path={path}")).await;
    for item in found["credentials"].as_array().unwrap_or(&Vec::new()) {
        let name = item["name"].as_str().unwrap_or_default();
        server
            .get(&format!("/api/v1/data?name={name}&current=true"))
            .await
            .expect(200);
        for version in server.versions(name).await {
            let id = version["id"].as_str().unwrap_or_default();
            let read: Value = server.get_json(&format!("/api/v1/data/{id}")).await;
            assert_eq!(read, version);
        }
    }
}

#[tokio::test]
async fn no_secret_is_in_the_audit_trail_in_either_format() {
    for format in ["json", "cef"] {
        let section = format!(
            "[audit]\nsink = \"file\"\nfile = \"audit.log\"\nformat = \"{format}\"\n\
             trusted_proxies = [\"127.0.0.1\"]"
        );
        let server = Server::start_with(&Options::default().audit(&section)).await;
        let mut canaries = Canaries::default();
        for part in server.token().split('.').skip(1) {
            canaries.watch("the token", part);
        }
        send_values(&server, &mut canaries).await;
        send_parameters(&server, &mut canaries).await;
        send_elsewhere(&server, &mut canaries).await;
        assert_absent_from_files(server, &canaries, "/marker/value").await;
    }
}

/// Sends values of every type, in requests that succeed and in requests that fail.
async fn send_values(server: &Server, canaries: &mut Canaries) {
    for (credential_type, fields) in [
        ("value", &[][..]),
        ("password", &[]),
        ("json", &["a"]),
        ("user", &["username", "password"]),
        ("rsa", &["public_key", "private_key"]),
        ("ssh", &["public_key", "private_key"]),
        ("certificate", &["ca", "certificate", "private_key"]),
        ("nonsense", &[]),
    ] {
        for name in [
            format!("/marker/{credential_type}"),
            "/not a name".to_owned(),
        ] {
            let mut secret =
                |source: &str| json!(canaries.plant(&format!("{credential_type} {source}")));
            let value = if fields.is_empty() {
                secret("value")
            } else {
                let fields = fields.iter();
                Value::Object(
                    fields
                        .map(|field| ((*field).to_owned(), secret(field)))
                        .collect(),
                )
            };
            let body = json!({
                "name": name, "type": credential_type, "value": value, "metadata": {"m": secret("metadata")},
            });
            server.put("/api/v1/data", body.clone()).await;
            server.post("/api/v1/data", body).await;
        }
    }
    let made = server
        .generated(
            "/marker/root",
            "certificate",
            json!({"common_name": "r", "is_ca": true, "key_type": "ecdsa-p256"}),
        )
        .await;
    canaries.watch_generated("a CA", &made["value"]);
}

/// Sends canaries in requests that generate credentials, regenerate credentials or interpolate a document.
async fn send_parameters(server: &Server, canaries: &mut Canaries) {
    for (credential_type, parameters) in [
        ("user", json!({"username": canaries.plant("a username")})),
        ("ssh", json!({"ssh_comment": canaries.plant("a comment")})),
        (
            "password",
            json!({"bogus": canaries.plant("an unknown parameter")}),
        ),
        (
            "certificate",
            json!({"common_name": canaries.plant("a subject"), "ca": "/marker/root", "key_type": "ecdsa-p256"}),
        ),
    ] {
        let name = format!("/made/{credential_type}");
        let response = server.generate(&name, credential_type, parameters).await;
        if response.status == 200 {
            canaries.watch_generated(credential_type, &response.json()["value"]);
        }
        let body = json!({"name": name, "metadata": canaries.plant("metadata of a regenerate")});
        let response = server.post("/api/v1/regenerate", body).await;
        if response.status == 200 {
            canaries.watch_generated(credential_type, &response.json()["value"]);
        }
    }
    server.bulk_regenerate("/marker/root").await.expect(200);
    let document = json!({
        canaries.plant("a service"): [
            {"credentials": {"credhub-ref": "/marker/json", "other": canaries.plant("a value in clear")}},
            {"credentials": {"credhub-ref": "/marker/json"}},
        ],
    });
    server.post("/api/v1/interpolate", document).await;
}

/// Sends canaries in wrong queries, headers and bodies.
async fn send_elsewhere(server: &Server, canaries: &mut Canaries) {
    for path in [
        format!(
            "/api/v1/data?name=/marker/value&value={}",
            canaries.plant("an unknown parameter")
        ),
        format!(
            "/api/v1/data?path=/&{}",
            canaries.plant("a parameter's name")
        ),
        format!(
            "/api/v1/data?name-like=a&access_token={}",
            canaries.plant("a token in a query")
        ),
        format!(
            "/api/v1/certificates?name=/marker/root&x={}",
            canaries.plant("a query of certificates")
        ),
        format!(
            "/nowhere?y={}",
            canaries.plant("a query of an unknown path")
        ),
    ] {
        let request = server
            .authorized(Method::GET, &path)
            .header("X-Forwarded-For", canaries.plant("X-Forwarded-For"))
            .header("Cookie", canaries.plant("a cookie"))
            .header("User-Agent", canaries.plant("a user agent"));
        server.send(request).await;
    }
    for (method, path) in [
        (Method::PUT, "/api/v1/data"),
        (Method::POST, "/api/v1/data"),
        (Method::POST, "/api/v1/regenerate"),
        (Method::POST, "/api/v1/bulk-regenerate"),
        (Method::POST, "/api/v1/interpolate"),
        (Method::POST, "/api/v2/permissions"),
        (Method::POST, "/management"),
    ] {
        let body = format!("{{\"{}\": ", canaries.plant("a body that breaks off"));
        server
            .send(server.authorized(method, path).body(body))
            .await;
    }
}
