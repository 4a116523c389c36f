//! What operators ask: `/api/v1/key-usage` and `/management`.

use reqwest::Method;
use serde::{Deserialize, Serialize};

use crate::{Client, Error, client::Call};

/// How many versions are encrypted by which keys.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct KeyUsage {
    /// By the key that encrypts what is written.
    pub active_key: u64,
    /// By other keys that the server has.
    pub inactive_keys: u64,
    /// By keys that the server does not have: these can't be read.
    pub unknown_keys: u64,
}

/// Whether a server takes writes.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ServerMode {
    /// It takes none.
    pub read_only_mode: bool,
}

impl Client {
    /// How many versions are encrypted by which keys.
    ///
    /// # Errors
    /// As any request.
    pub async fn key_usage(&self) -> Result<KeyUsage, Error> {
        self.ask(&Call::new(Method::GET, "/api/v1/key-usage")).await
    }

    /// Whether the server that answers takes writes.
    ///
    /// # Errors
    /// When the caller may not manage it; and as any request.
    pub async fn server_mode(&self) -> Result<ServerMode, Error> {
        self.ask(&Call::new(Method::GET, MANAGEMENT)).await
    }

    /// Switches read-only mode on or off, in the one server that answers and until it ends.
    ///
    /// # Errors
    /// As [`Client::server_mode`].
    pub async fn switch_read_only_mode(&self, is_on: bool) -> Result<ServerMode, Error> {
        let body = ServerMode {
            read_only_mode: is_on,
        };
        self.ask(&Call::new(Method::POST, MANAGEMENT).body(&body)?)
            .await
    }
}

const MANAGEMENT: &str = "/management";
