//! Common requests of tests, as the client `developer`.

use serde_json::{Value, json};

use crate::{Response, SERVER_NAME, Server};

/// The address of credentials.
const DATA: &str = "/api/v1/data";

const PERMISSIONS: &str = "/api/v2/permissions";

/// A key type that is generated quickly, for tests that do not depend on the type.
pub const QUICK_KEY: &str = "ecdsa-p256";

impl Server {
    /// Sets a credential.
    pub async fn set(&self, name: &str, credential_type: &str, value: Value) -> Response {
        let body = json!({"name": name, "type": credential_type, "value": value});
        self.put(DATA, body).await
    }

    /// Sets a credential, and returns its version.
    pub async fn stored(&self, name: &str, credential_type: &str, value: Value) -> Value {
        let response = self.set(name, credential_type, value).await;
        response.expect(200).json()
    }

    /// Sets a credential of type value, and returns its version.
    pub async fn set_value(&self, name: &str, text: &str) -> Value {
        self.stored(name, "value", json!(text)).await
    }

    /// Generates a credential in the default mode.
    pub async fn generate(&self, name: &str, credential_type: &str, parameters: Value) -> Response {
        let body = json!({"name": name, "type": credential_type, "parameters": parameters});
        self.post(DATA, body).await
    }

    /// Generates a credential in the default mode, and returns its version.
    pub async fn generated(&self, name: &str, credential_type: &str, parameters: Value) -> Value {
        let response = self.generate(name, credential_type, parameters).await;
        response.expect(200).json()
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

    /// Regenerates a credential, and returns its new version.
    pub async fn regenerated(&self, name: &str) -> Value {
        self.regenerate(name).await.expect(200).json()
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

    /// Returns the newest version of an existing credential.
    pub async fn newest(&self, name: &str) -> Value {
        self.versions(name).await[0].clone()
    }

    /// Returns all versions of all credentials, the most recently written credential first.
    pub async fn all_versions(&self) -> Vec<Value> {
        let mut all = Vec::new();
        for name in self.found_names("path=").await {
            all.extend(self.versions(&name).await);
        }
        all
    }

    /// Returns the names in the response to a search, in their order.
    pub async fn found_names(&self, query: &str) -> Vec<String> {
        let found = self.get_json(&format!("{DATA}?{query}")).await;
        let found = found["credentials"].as_array().unwrap().iter();
        let names = found.map(|item| item["name"].as_str().unwrap().to_owned());
        names.collect()
    }

    /// Sends a GET request, and returns the body of the response.
    pub async fn get_json(&self, path: &str) -> Value {
        self.get(path).await.expect(200).json()
    }

    /// Turns read-only mode on or off.
    pub async fn set_read_only(&self, is_read_only: bool) {
        let mode = json!({"read_only_mode": is_read_only});
        let response = self.post("/management", mode.clone()).await;
        assert_eq!(response.expect(200).json(), mode);
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

    /// Generates a certificate and returns its version. The common name defaults to its name, and the key to a quickly generated
    /// type.
    pub async fn issued(&self, name: &str, mut parameters: Value) -> Value {
        let fields = parameters.as_object_mut().unwrap();
        for (field, value) in [("common_name", name), ("key_type", QUICK_KEY)] {
            fields.entry(field).or_insert_with(|| json!(value));
        }
        self.generated(name, "certificate", parameters).await
    }

    /// Generates a CA with a key that is generated quickly, self-signed or signed by another CA. Returns its version.
    pub async fn generate_authority(&self, name: &str, signed_by: Option<&str>) -> Value {
        let mut parameters = json!({"common_name": name, "is_ca": true, "key_type": QUICK_KEY});
        if let Some(signed_by) = signed_by {
            parameters["ca"] = json!(signed_by);
        }
        self.generated(name, "certificate", parameters).await
    }

    /// Generates a certificate of a TLS server named [`SERVER_NAME`]. Returns its version.
    pub async fn generate_leaf(&self, name: &str, signed_by: &str) -> Value {
        let parameters = json!({
            "common_name": name,
            "ca": signed_by,
            "alternative_names": [SERVER_NAME],
            "key_type": QUICK_KEY,
        });
        self.generated(name, "certificate", parameters).await
    }

    /// Returns the active version of a credential, followed by the transitional one.
    pub async fn current_versions(&self, name: &str) -> Vec<Value> {
        let path = format!("{DATA}?name={name}&current=true");
        let response = self.get(&path).await.expect(200).json();
        response["data"].as_array().unwrap().clone()
    }

    /// Returns the path of a certificate.
    pub async fn certificate_path(&self, name: &str) -> String {
        let path = format!("/api/v1/certificates?name={name}");
        let found = self.get_json(&path).await;
        let id = found["certificates"][0]["id"].as_str().unwrap();
        format!("/api/v1/certificates/{id}")
    }

    /// Adds a transitional version to a certificate.
    pub async fn regenerate_as_transitional(&self, name: &str) {
        let path = self.certificate_path(name).await + "/regenerate";
        let body = json!({"set_as_transitional": true});
        self.post(&path, body).await.expect(200);
    }

    /// Moves the transitional flag of a certificate to the version with this id, or clears it.
    pub async fn move_transitional(&self, name: &str, version_id: &Value) -> Response {
        let path = self.certificate_path(name).await + "/update_transitional_version";
        self.put(&path, json!({"version": version_id})).await
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
