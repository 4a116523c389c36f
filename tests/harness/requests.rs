//! Common requests of tests, as the client `developer`.

use serde_json::{Value, json};

use crate::{Response, Server};

/// The address of credentials.
const DATA: &str = "/api/v1/data";

const PERMISSIONS: &str = "/api/v2/permissions";

impl Server {
    /// Sets a credential.
    pub async fn set(&self, name: &str, credential_type: &str, value: Value) -> Response {
        let body = json!({"name": name, "type": credential_type, "value": value});
        self.put(DATA, body).await
    }

    /// Generates a credential in the default mode.
    pub async fn generate(&self, name: &str, credential_type: &str, parameters: Value) -> Response {
        let body = json!({"name": name, "type": credential_type, "parameters": parameters});
        self.post(DATA, body).await
    }

    /// Generates a credential in this mode.
    pub async fn generate_in_mode(
        &self,
        mode: &str,
        name: &str,
        credential_type: &str,
        parameters: Value,
    ) -> Response {
        let body = json!({
            "name": name, "type": credential_type, "mode": mode, "parameters": parameters,
        });
        self.post(DATA, body).await
    }

    /// Regenerates a credential.
    pub async fn regenerate(&self, name: &str) -> Response {
        self.post("/api/v1/regenerate", json!({"name": name})).await
    }

    /// Regenerates all certificates signed by a CA.
    pub async fn bulk_regenerate(&self, signed_by: &str) -> Response {
        let body = json!({"signed_by": signed_by});
        self.post("/api/v1/bulk-regenerate", body).await
    }

    /// Returns all versions of a credential, newest first; empty if it does not exist.
    pub async fn versions(&self, name: &str) -> Vec<Value> {
        let response = self.get(&format!("{DATA}?name={name}")).await;
        if response.status == 404 {
            return Vec::new();
        }
        let mut body = response.expect(200).json();
        match body["data"].take() {
            Value::Array(versions) => versions,
            other => panic!("no list of versions: {other}"),
        }
    }

    /// Adds a new permission and returns its id.
    pub async fn grant(&self, path: &str, actor: &str, operations: &[&str]) -> String {
        let body = json!({"path": path, "actor": actor, "operations": operations});
        let permission = self.post(PERMISSIONS, body).await.expect(201).json();
        permission["uuid"].as_str().unwrap().to_owned()
    }

    /// Deletes an existing permission.
    pub async fn revoke(&self, id: &str) -> Response {
        let response = self.delete(&format!("{PERMISSIONS}/{id}")).await;
        response.expect(200)
    }

    /// Adds a transitional version to a certificate.
    pub async fn regenerate_as_transitional(&self, name: &str) -> Response {
        let path = format!("/api/v1/certificates?name={name}");
        let found = self.get(&path).await.expect(200).json();
        let id = found["certificates"][0]["id"].as_str().unwrap();
        let path = format!("/api/v1/certificates/{id}/regenerate");
        self.post(&path, json!({"set_as_transitional": true})).await
    }

    /// Returns the SHA-256 of the component that generates credentials of a type, in hexadecimal.
    pub async fn plugin_digest(&self, credential_type: &str) -> String {
        let described = self.get("/api/v1/types").await.expect(200).json();
        let types = described["types"].as_array().unwrap();
        let found = types.iter().find(|found| found["name"] == credential_type);
        let digest = &found.unwrap()["plugin"]["digest"];
        digest.as_str().unwrap().to_owned()
    }
}
