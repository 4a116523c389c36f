//! Changes at one server are effective at the others immediately: no server caches data that another can change.

use std::sync::Arc;

use keywright_harness::{Caller, Options, Server};
use reqwest::Method;
use serde_json::json;

use super::three_servers;

const PERMISSIONS: &str = "/api/v2/permissions";

/// Servers on PostgreSQL, if installed, and then on a file.
async fn each_engine() -> Vec<Vec<Arc<Server>>> {
    let mut all = vec![three_servers(&Options::default().storage("file = \"keywright.db\"")).await];
    if let Some(postgres) = keywright_test_postgres::shared() {
        let storage = format!("url = \"{}\"", postgres.new_database());
        all.push(three_servers(&Options::default().storage(&storage)).await);
    }
    all
}

#[tokio::test]
async fn a_permission_change_is_effective_at_other_servers() {
    for servers in each_engine().await {
        servers[0].set("/a", "value", "v".into()).await.expect(200);
        let mut at_each: Vec<Caller> = Vec::new();
        for server in &servers {
            let client = servers[0].as_client("other").await;
            at_each.push(client.at(server));
        }
        let read = "/api/v1/data?name=/a";
        for round in 0..servers.len() * 2 {
            let (one, other) = (&servers[round % 3], &servers[(round + 1) % 3]);
            let body = json!({"path": "/a", "actor": at_each[0].actor(), "operations": ["read"]});
            let given = one.post(PERMISSIONS, body).await.expect(201).json();
            for client in &at_each {
                client.get(read).await.expect(200);
            }
            let path = format!("{PERMISSIONS}/{}", given["uuid"].as_str().unwrap());
            other.delete(&path).await.expect(200);
            for client in &at_each {
                client.get(read).await.expect(404);
            }
        }
    }
}

#[tokio::test]
async fn a_credential_change_is_effective_at_other_servers() {
    for servers in each_engine().await {
        for (number, writer) in servers.iter().enumerate() {
            let value = format!("{number}");
            let set = writer.set("/a", "value", value.into()).await.expect(200);
            for reader in &servers {
                let versions = reader.versions("/a").await;
                assert_eq!(versions, [set.json()]);
                let converged = json!({"name": "/p", "type": "password"});
                reader.post("/api/v1/data", converged).await.expect(200);
                assert_eq!(reader.versions("/p").await.len(), 1);
            }
            writer.delete("/api/v1/data?name=/a").await.expect(204);
            for reader in &servers {
                assert!(reader.versions("/a").await.is_empty());
            }
        }
    }
}

#[tokio::test]
async fn read_only_mode_applies_to_one_process() {
    for servers in each_engine().await {
        let body = json!({"read_only_mode": true}).to_string();
        let request = servers[0]
            .authorized(Method::POST, "/management")
            .body(body);
        servers[0].send(request).await.expect(200);
        servers[0].set("/a", "value", "v".into()).await.expect(503);
        servers[1].set("/a", "value", "v".into()).await.expect(200);
        assert_eq!(servers[0].versions("/a").await.len(), 1);
    }
}
