//! Interpolating service bindings: `POST /api/v1/interpolate`.

mod failures;
mod references;
mod shapes;

use keywright_harness::{Answer, Server};
use serde_json::{Value, json};

async fn interpolate(server: &Server, document: Value) -> Answer {
    server.post("/api/v1/interpolate", document).await
}

/// A document with one service that has one binding.
fn one_binding(credentials: &Value) -> Value {
    json!({"service": [{"name": "binding", "credentials": credentials}]})
}

/// A server with the credential `/secret` of type json, and its value.
async fn with_secret() -> (Server, Value) {
    let server = Server::start().await;
    let value = json!({"password": "p", "nested": {"list": [1, null, "ä"]}});
    server
        .set("/secret", "json", value.clone())
        .await
        .expect(200);
    (server, value)
}
