//! Requests for operators: `/api/v1/key-usage` and `/management`.

use reqwest::Method;
use serde::{Deserialize, Serialize};

use crate::{Client, Error, client::Call};

/// The number of versions by encryption key.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct KeyUsage {
    /// Versions encrypted with the active key.
    pub active_key: u64,
    /// Versions encrypted with other keys of the server.
    pub inactive_keys: u64,
    /// Versions encrypted with keys that the server does not have. They can't be read.
    pub unknown_keys: u64,
}

/// The mode of a server.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ServerMode {
    /// Whether the server refuses writes.
    pub read_only_mode: bool,
}

impl Client {
    /// Counts the versions by encryption key.
    ///
    /// # Errors
    /// As any request.
    pub async fn key_usage(&self) -> Result<KeyUsage, Error> {
        self.execute(&Call::new(Method::GET, "/api/v1/key-usage"))
            .await
    }

    /// Returns the mode of the server that handles the request.
    ///
    /// # Errors
    /// When the caller may not manage the server; and as any request.
    pub async fn server_mode(&self) -> Result<ServerMode, Error> {
        self.execute(&Call::new(Method::GET, MANAGEMENT)).await
    }

    /// Switches read-only mode on or off, only for the server that handles the request and until it stops.
    ///
    /// # Errors
    /// As [`Client::server_mode`].
    pub async fn switch_read_only_mode(&self, is_on: bool) -> Result<ServerMode, Error> {
        let body = ServerMode {
            read_only_mode: is_on,
        };
        self.execute(&Call::new(Method::POST, MANAGEMENT).body(&body)?)
            .await
    }
}

const MANAGEMENT: &str = "/management";
