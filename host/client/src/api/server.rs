//! The server itself: `/version`, `/api/v1/types`, `/api/v1/key-usage` and `/management`.
//!
//! `/api/v1/types` is an extension that CredHub lacks.

use reqwest::Method;
use serde::{Deserialize, Serialize};
use serde_json::Value;

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

/// A credential type.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
pub struct KnownType {
    /// The name.
    pub name: String,
    /// A one-line description.
    pub summary: String,
    /// The plugin that generates values; `None` if values can only be set.
    pub plugin: Option<Plugin>,
    /// The JSON Schema of the generation parameters; null if values can only be set.
    #[serde(default)]
    pub parameters: Value,
    /// The JSON Schema of the values.
    #[serde(default)]
    pub value: Value,
}

/// A plugin that generates values.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Plugin {
    /// The name.
    pub name: String,
    /// The version assigned by the author.
    pub version: String,
    /// The SHA-256 of the component, in hexadecimal digits.
    pub digest: String,
}

impl Client {
    /// Returns the server's level of the API, such as `2.15.0`. Requires authentication.
    pub async fn version(&self) -> Result<String, Error> {
        let response: Version = self.execute(&Call::new(Method::GET, "/version")).await?;
        Ok(response.version)
    }

    /// Returns the credential types of the server.
    ///
    /// # Errors
    /// When the server does not list its types (404).
    pub async fn types(&self) -> Result<Vec<KnownType>, Error> {
        let call = Call::new(Method::GET, "/api/v1/types");
        self.execute::<Types>(&call)
            .await
            .map(|response| response.types)
    }

    /// Counts the versions by encryption key.
    pub async fn key_usage(&self) -> Result<KeyUsage, Error> {
        self.execute(&Call::new(Method::GET, "/api/v1/key-usage"))
            .await
    }

    /// Returns the mode of the server that handles the request.
    pub async fn server_mode(&self) -> Result<ServerMode, Error> {
        self.execute(&Call::new(Method::GET, MANAGEMENT)).await
    }

    /// Switches read-only mode on or off, only for the server that handles the request and until it stops.
    pub async fn switch_read_only_mode(&self, is_on: bool) -> Result<ServerMode, Error> {
        let body = ServerMode {
            read_only_mode: is_on,
        };
        self.execute(&Call::new(Method::POST, MANAGEMENT).body(&body)?)
            .await
    }
}

#[derive(Deserialize)]
struct Version {
    version: String,
}

#[derive(Deserialize)]
struct Types {
    types: Vec<KnownType>,
}

const MANAGEMENT: &str = "/management";
