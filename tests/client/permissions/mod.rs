//! The verbs of permissions.

mod add;
mod delete;
mod get;
mod update;

use keywright_harness::{Server, Shell};
use serde_json::Value;

/// The actor's permission on the path, if any.
async fn stored(server: &Server, path: &str, actor: &str) -> Option<Value> {
    let path = format!("/api/v2/permissions?path={path}&actor={actor}");
    let response = server.get(&path).await;
    (response.status != 404).then(|| response.expect(200).json())
}

/// A shell of a client without permissions.
async fn stranger(server: &Server) -> Shell {
    let caller = server.as_client("stranger").await;
    Shell::at(server).variable("KEYWRIGHT_CLIENT_TOKEN", caller.token())
}

const ACTOR: &str = "uaa-client:app";
