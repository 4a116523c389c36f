//! The types that a server knows: `/api/v1/types`, which is no part of the API that other servers have.

use reqwest::Method;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Client, Error, client::Call};

/// A credential type.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
pub struct KnownType {
    /// Its name.
    pub name: String,
    /// What it is, in one line.
    pub summary: String,
    /// What makes its values; none where they can only be set.
    pub plugin: Option<Plugin>,
    /// The JSON Schema of what a value is generated from; null where none can be.
    #[serde(default)]
    pub parameters: Value,
    /// The JSON Schema of its values.
    #[serde(default)]
    pub value: Value,
}

/// What makes the values of a type.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Plugin {
    /// Its name.
    pub name: String,
    /// Its version, as its author counts.
    pub version: String,
    /// The SHA-256 of the component, in hexadecimal digits.
    pub digest: String,
}

impl Client {
    /// The types that the server knows.
    ///
    /// # Errors
    /// When the server does not tell (404); and as any request.
    pub async fn types(&self) -> Result<Vec<KnownType>, Error> {
        let call = Call::new(Method::GET, "/api/v1/types");
        self.ask::<Types>(&call).await.map(|answer| answer.types)
    }
}

#[derive(Deserialize)]
struct Types {
    types: Vec<KnownType>,
}
