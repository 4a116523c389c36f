//! The verbs of certificates.

mod bulk_regenerate;
mod list;
mod regenerate;
mod rotate;
mod rotate_below;
mod rotate_failures;
mod rotate_paces;
mod transitional;
mod versions;

use keywright_harness::{SERVER_NAME, Server};
use serde_json::{Value, json};

/// Generates a CA, self-signed or signed by another CA.
async fn authority(server: &Server, name: &str, signed_by: Option<&str>) -> Value {
    let mut parameters = json!({"common_name": name, "is_ca": true, "key_type": QUICK_KEY});
    if let Some(signed_by) = signed_by {
        parameters["ca"] = json!(signed_by);
    }
    let response = server.generate(name, "certificate", parameters).await;
    response.expect(200).json()
}

/// Generates a certificate of a TLS server.
async fn leaf(server: &Server, name: &str, signed_by: &str) -> Value {
    let parameters = json!({
        "common_name": name,
        "ca": signed_by,
        "alternative_names": [SERVER_NAME],
        "key_type": QUICK_KEY,
    });
    let response = server.generate(name, "certificate", parameters).await;
    response.expect(200).json()
}

/// The active version of a certificate, followed by the transitional one.
async fn current(server: &Server, name: &str) -> Vec<Value> {
    let path = format!("/api/v1/data?name={name}&current=true");
    let answer = server.get(&path).await.expect(200).json();
    answer["data"].as_array().unwrap().clone()
}

/// The summary of a certificate.
async fn summary(server: &Server, name: &str) -> Value {
    let path = format!("/api/v1/certificates?name={name}");
    server.get(&path).await.expect(200).json()["certificates"][0].clone()
}

/// Adds a transitional version.
async fn regenerate_transitional(server: &Server, name: &str) {
    let id = summary(server, name).await["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let path = format!("/api/v1/certificates/{id}/regenerate");
    let body = json!({"set_as_transitional": true});
    server.post(&path, body).await.expect(200);
}

/// A key type that is generated quickly.
const QUICK_KEY: &str = "ecdsa-p256";
