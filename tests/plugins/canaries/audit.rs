//! The audit trail in both formats, after requests of every kind, including failing ones.

#![expect(
    clippy::indexing_slicing,
    reason = "a test ends when an answer is not what it must be"
)]

use keywright_harness::{Options, Server};
use reqwest::Method;
use serde_json::{Value, json};

use super::{Canaries, traces::assert_left_nowhere};

#[tokio::test]
async fn no_secret_is_in_the_audit_trail_in_either_form() {
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
        assert_left_nowhere(server, &canaries, "/marker/value").await;
    }
}

/// Values of every type, in requests that succeed and in requests that fail.
async fn send_values(server: &Server, canaries: &mut Canaries) {
    for (credential_type, members) in [
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
            let value = if members.is_empty() {
                secret("value")
            } else {
                let members = members.iter();
                Value::Object(
                    members
                        .map(|member| ((*member).to_owned(), secret(member)))
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
        .generate(
            "/marker/root",
            "certificate",
            json!({"common_name": "r", "is_ca": true, "key_type": "ecdsa-p256"}),
        )
        .await
        .expect(200)
        .json();
    canaries.watch_made("an authority", &made["value"]);
}

/// Sends parameters and metadata to generate and regenerate.
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
        let answer = server.generate(&name, credential_type, parameters).await;
        if answer.status == 200 {
            canaries.watch_made(credential_type, &answer.json()["value"]);
        }
        let body = json!({"name": name, "metadata": canaries.plant("metadata of a regenerate")});
        let answer = server.post("/api/v1/regenerate", body).await;
        if answer.status == 200 {
            canaries.watch_made(credential_type, &answer.json()["value"]);
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
        format!("/nowhere?y={}", canaries.plant("a query of nothing")),
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
