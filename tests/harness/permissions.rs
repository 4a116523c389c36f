//! Giving and taking permissions, as the client `developer`.

use serde_json::json;

use crate::{Answer, Server};

/// The address of permissions.
const PERMISSIONS: &str = "/api/v2/permissions";

impl Server {
    /// Adds a new permission and returns its id.
    pub async fn grant(&self, path: &str, actor: &str, operations: &[&str]) -> String {
        let body = json!({"path": path, "actor": actor, "operations": operations});
        let permission = self.post(PERMISSIONS, body).await.expect(201).json();
        permission["uuid"].as_str().unwrap().to_owned()
    }

    /// Deletes an existing permission.
    pub async fn revoke(&self, id: &str) -> Answer {
        let answer = self.delete(&format!("{PERMISSIONS}/{id}")).await;
        answer.expect(200)
    }
}
