//! Permissions that another request deletes meanwhile.

use std::sync::atomic::Ordering;

use serde_json::json;

use crate::{credentials::check, harness::Service};

#[tokio::test]
async fn a_concurrently_deleted_permission_is_not_found() {
    let whole = json!({"path": "/a", "actor": "someone", "operations": ["read"]});
    for (method, body) in [
        ("PUT", whole.clone()),
        ("PATCH", json!({"operations": ["read"]})),
        ("DELETE", json!("")),
    ] {
        let service = Service::new();
        let added = service
            .send_json("POST", "/api/v2/permissions", &whole)
            .await
            .json();
        let path = format!("/api/v2/permissions/{}", added["uuid"].as_str().unwrap());
        let switch = &service.permissions.is_deleted_before_change;
        switch.store(true, Ordering::SeqCst);
        check(&service, method, &path, body, 404).await;
    }
}
