//! The credential types of a server: `/api/v1/types`, an extension that other servers of this API don't have.

use reqwest::Method;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Client, Error, client::Call};

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
    /// Returns the credential types of the server.
    ///
    /// # Errors
    /// When the server does not describe its types (404); and as any request.
    pub async fn types(&self) -> Result<Vec<KnownType>, Error> {
        let call = Call::new(Method::GET, "/api/v1/types");
        self.execute::<Types>(&call)
            .await
            .map(|response| response.types)
    }
}

#[derive(Deserialize)]
struct Types {
    types: Vec<KnownType>,
}
