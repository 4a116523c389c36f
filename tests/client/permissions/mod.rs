//! The verbs of permissions.

mod add;
mod delete;
mod get;
mod update;

use keywright_harness::{Server, Shell};
use serde_json::Value;

/// The permissions that an actor has, as the server has them: none when there is none on that path.
async fn stored(server: &Server, path: &str, actor: &str) -> Option<Value> {
    let path = format!("/api/v2/permissions?path={path}&actor={actor}");
    let answer = server.get(&path).await;
    (answer.status != 404).then(|| answer.expect(200).json())
}

/// A shell that is logged in as a client without any permission of its own.
async fn stranger(server: &Server) -> Shell {
    let caller = server.as_client("stranger").await;
    Shell::at(server).variable("KEYWRIGHT_CLIENT_TOKEN", caller.token())
}

const ACTOR: &str = "uaa-client:app";
