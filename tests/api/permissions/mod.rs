//! Permissions: responses, authorization of each request, and effects.

mod by_credential;
mod explain;
mod lifetime;
mod requests;
mod who_may_change;

use keywright_harness::{Caller, Response, Server};
use reqwest::Method;
use serde_json::{Value, json};

pub(crate) const PERMISSIONS: &str = "/api/v2/permissions";

/// The path of the permissions on a credential.
pub(crate) const BY_CREDENTIAL: &str = "/api/v1/permissions";

const UNKNOWN_ID: &str = "0b7f1c52-6f5e-4d43-8f0d-0d5c3c1b9a77";

/// All operations, in order.
const ALL: [&str; 5] = ["read", "write", "delete", "read_acl", "write_acl"];

fn permission(path: &str, actor: &str, operations: &[&str]) -> Value {
    json!({"path": path, "actor": actor, "operations": operations})
}

/// Returns a body for `/api/v1/permissions` with one entry.
fn on_credential(name: &str, actor: &str, operations: &[&str]) -> Value {
    json!({"credential_name": name, "permissions": [permission(name, actor, operations)]})
}

/// Returns the path of a permission.
pub(crate) fn address(id: &str) -> String {
    format!("{PERMISSIONS}/{id}")
}

/// Returns the query for the permissions on a credential.
fn by_name(name: &str) -> String {
    format!("{BY_CREDENTIAL}?credential_name={name}")
}

/// Returns the query for an actor's permission on a path.
fn query(path: &str, actor: &str) -> String {
    format!("{PERMISSIONS}?path={path}&actor={actor}")
}

/// Returns an actor's permission on a path, or `None`.
pub(crate) async fn stored(server: &Server, path: &str, actor: &str) -> Option<Value> {
    let response = server.get(&query(path, actor)).await;
    (response.status != 404).then(|| response.expect(200).json())
}

/// Returns the operations of an actor's permission on a path, or null.
pub(crate) async fn operations(server: &Server, path: &str, actor: &str) -> Value {
    let stored = stored(server, path, actor).await;
    let operations = stored.and_then(|permission| permission.get("operations").cloned());
    operations.unwrap_or_default()
}

/// Returns a client with these operations on this path only.
async fn client_with(server: &Server, path: &str, operations: &[&str]) -> Caller {
    let client = server.as_client("someone").await;
    server.grant(path, client.actor(), operations).await;
    client
}

/// Sends a request, without a body if it is null.
async fn send(caller: &Caller, method: &Method, path: &str, body: &Value) -> Response {
    if body.is_null() {
        return match method.as_str() {
            "GET" => caller.get(path).await,
            _ => caller.delete(path).await,
        };
    }
    caller.send(method.clone(), path, body.clone()).await
}
