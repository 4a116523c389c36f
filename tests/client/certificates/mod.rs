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

/// Generates an authority that signs itself, or that another one signs.
async fn authority(server: &Server, name: &str, signed_by: Option<&str>) -> Value {
    let mut parameters = json!({"common_name": name, "is_ca": true, "key_type": QUICK_KEY});
    if let Some(signed_by) = signed_by {
        parameters["ca"] = json!(signed_by);
    }
    let answer = server.generate(name, "certificate", parameters).await;
    answer.expect(200).json()
}

/// Generates a certificate of a TLS server.
async fn leaf(server: &Server, name: &str, signed_by: &str) -> Value {
    let parameters = json!({
        "common_name": name,
        "ca": signed_by,
        "alternative_names": [SERVER_NAME],
        "key_type": QUICK_KEY,
    });
    let answer = server.generate(name, "certificate", parameters).await;
    answer.expect(200).json()
}

/// The versions of a certificate that are in use: the one that signs, and the transitional one.
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

/// Sends a body to the address of a certificate.
async fn regenerate_transitional(server: &Server, name: &str) {
    let id = summary(server, name).await["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let path = format!("/api/v1/certificates/{id}/regenerate");
    let body = json!({"set_as_transitional": true});
    server.post(&path, body).await.expect(200);
}

/// A type of key that is made quickly.
const QUICK_KEY: &str = "ecdsa-p256";
