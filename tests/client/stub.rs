//! What servers answer that tests make up.

pub(crate) use keywright_harness::{Asked, Reply, Stub};

/// A credential as a server answers with it.
pub(crate) const VERSION: &str = r#"{"type":"value","version_created_at":"2026-01-01T00:00:00Z","id":"8563075f-ca25-4adf-9acb-a4be6a9077fd","name":"/a","metadata":null,"value":"v"}"#;

/// The same as the only version in use.
pub(crate) fn versions() -> String {
    format!("{{\"data\":[{VERSION}]}}")
}
