//! `/api/v1/certificates`.

mod all_types;
mod change_versions;
mod concurrency;
mod read;
mod regenerate;
mod requests;
mod rotation;

use keywright_harness::{Response, Server};
use reqwest::Method;
use serde_json::{Value, json};

use crate::{external_certificates, given, keys::with_certificate};

const CERTIFICATES: &str = "/api/v1/certificates";

/// A certificate on a server, by the id of its credential.
pub(crate) struct Certificate<'a> {
    server: &'a Server,
    id: String,
}

impl<'a> Certificate<'a> {
    /// Returns an existing certificate.
    pub(crate) async fn named(server: &'a Server, name: &str) -> Self {
        let summary = summary(server, name).await;
        Self {
            server,
            id: given::id(&summary),
        }
    }

    /// Generates a certificate, with a default common name and key type.
    pub(crate) async fn generate(server: &'a Server, name: &str, parameters: Value) -> Self {
        server.issued(name, parameters).await;
        Self::named(server, name).await
    }

    /// Generates a self-signed CA.
    pub(crate) async fn generate_root(server: &'a Server, name: &str) -> Self {
        Self::generate(server, name, json!({"is_ca": true})).await
    }

    pub(crate) async fn set(server: &'a Server, name: &str, value: Value) -> Self {
        server.stored(name, "certificate", value).await;
        Self::named(server, name).await
    }

    /// Sets a CA this many times.
    async fn set_times(server: &'a Server, name: &str, count: usize) -> Self {
        let value = external_certificates::authority("root").value();
        for _ in 0..count {
            server.stored(name, "certificate", value.clone()).await;
        }
        Self::named(server, name).await
    }

    /// Regenerates it through its own endpoint.
    pub(crate) async fn regenerate(&self, body: Value) -> Response {
        self.server.post(&self.path("regenerate"), body).await
    }

    /// Moves the transitional flag to the given `version`.
    pub(crate) async fn move_transitional(&self, version: Value) -> Response {
        let path = self.path("update_transitional_version");
        let body = json!({"version": version});
        self.server.put(&path, body).await
    }

    /// Returns all versions of the certificate, newest first.
    pub(crate) async fn versions(&self) -> Vec<Value> {
        self.versions_where("").await
    }

    /// Returns the active version and the transitional version of the certificate.
    pub(crate) async fn current(&self) -> Vec<Value> {
        self.versions_where("?current=true").await
    }

    async fn versions_where(&self, query: &str) -> Vec<Value> {
        let path = self.path(&format!("versions{query}"));
        array(&self.server.get(&path).await.expect(200))
    }

    /// Adds a version with a given certificate.
    pub(crate) async fn add_version(&self, body: Value) -> Response {
        self.server.post(&self.path("versions"), body).await
    }

    pub(crate) async fn delete_version(&self, version_id: &str) -> Response {
        let path = self.path(&format!("versions/{version_id}"));
        self.server.delete(&path).await
    }

    /// Returns a path below the certificate's own path.
    pub(crate) fn path(&self, below: &str) -> String {
        format!("{CERTIFICATES}/{}/{below}", self.id)
    }
}

/// Asserts that the `ca` of a version is this version of the CA, and that the CA's key verifies the signature.
#[track_caller]
pub(crate) fn assert_signed_by(version: &Value, authority: &Value) {
    assert_eq!(
        version["value"]["ca"], authority["value"]["certificate"],
        "{} is not signed by this version of {}",
        version["name"], authority["name"]
    );
    let pem = |version: &Value| version["value"]["certificate"].as_str().unwrap().to_owned();
    with_certificate(&pem(authority), |authority| {
        with_certificate(&pem(version), |certificate| {
            let key = Some(authority.public_key());
            assert!(certificate.verify_signature(key).is_ok());
        });
    });
}

async fn summary(server: &Server, name: &str) -> Value {
    let path = format!("{CERTIFICATES}?name={name}");
    let summaries = server.get_json(&path).await["certificates"].take();
    assert_eq!(summaries.as_array().unwrap().len(), 1);
    summaries[0].clone()
}

/// Returns the versions in a response.
fn array(response: &Response) -> Vec<Value> {
    response.json().as_array().unwrap().clone()
}

fn ids(versions: &[Value]) -> Vec<String> {
    versions.iter().map(given::id).collect()
}

fn transitional(versions: &[Value]) -> Vec<String> {
    let flagged = versions
        .iter()
        .filter(|version| version["transitional"] == true);
    flagged.map(given::id).collect()
}

/// Returns every request below a certificate's path, with a valid body.
fn requests(certificate_id: &str, version_id: &str) -> Vec<(Method, String, Value)> {
    let path = |below: &str| format!("{CERTIFICATES}/{certificate_id}/{below}");
    let certificate = external_certificates::authority("x").certificate;
    let new = json!({"value": {"certificate": certificate}});
    let one = path(&format!("versions/{version_id}"));
    let flag = path("update_transitional_version");
    vec![
        (Method::GET, path("versions"), Value::Null),
        (Method::GET, path("versions?current=true"), Value::Null),
        (Method::POST, path("versions"), new),
        (Method::DELETE, one, Value::Null),
        (Method::POST, path("regenerate"), json!({})),
        (Method::PUT, flag.clone(), json!({"version": version_id})),
        (Method::PUT, flag, json!({"version": null})),
    ]
}
