//! Generating and regenerating: `POST /api/v1/data` and `/api/v1/regenerate`.

use reqwest::Method;
use serde::Serialize;
use serde_json::{Map, Value};

use super::credentials::DATA;
use crate::{Client, CredentialVersion, Error, SecretJson, client::Call, secret::Exposed};

/// A credential to generate.
#[derive(Clone, Debug)]
pub struct GenerateCredential {
    name: String,
    credential_type: String,
    mode: Option<GenerateMode>,
    parameters: Map<String, Value>,
    metadata: Option<SecretJson>,
}

/// What to do if the credential exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum GenerateMode {
    /// Add a version if the parameters differ. The default of servers.
    Converge,
    /// Keep the credential.
    NoOverwrite,
    /// Add a version.
    Overwrite,
}

impl GenerateCredential {
    /// Creates a credential from a name and a type, with the type's default parameters.
    #[must_use]
    pub fn new(name: impl Into<String>, credential_type: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            credential_type: credential_type.into(),
            mode: None,
            parameters: Map::new(),
            metadata: None,
        }
    }

    /// Sets the parameters.
    #[must_use]
    pub fn parameters(mut self, parameters: Map<String, Value>) -> Self {
        self.parameters = parameters;
        self
    }

    /// Sets the mode.
    #[must_use]
    pub fn mode(mut self, mode: GenerateMode) -> Self {
        self.mode = Some(mode);
        self
    }

    /// Adds metadata, an object. It is not encrypted.
    #[must_use]
    pub fn metadata(mut self, metadata: SecretJson) -> Self {
        self.metadata = Some(metadata);
        self
    }
}

impl Client {
    /// Generates a credential, or returns the existing version: see [`GenerateMode`].
    ///
    /// # Errors
    /// When the type has no generator, the server refuses the parameters, or the caller may not write the credential; and as any
    /// request.
    pub async fn generate_credential(
        &self,
        credential: &GenerateCredential,
    ) -> Result<CredentialVersion, Error> {
        let body = Generate {
            name: &credential.name,
            credential_type: &credential.credential_type,
            mode: credential.mode,
            parameters: &credential.parameters,
            metadata: credential.metadata.as_ref().map(SecretJson::exposed),
        };
        self.execute(&Call::new(Method::POST, DATA).body(&body)?)
            .await
    }

    /// Adds a version, generated with the parameters of the latest version. Does not inherit metadata.
    ///
    /// # Errors
    /// When the credential does not exist, was not generated, or the caller may not write it; and as any request.
    pub async fn regenerate_credential(
        &self,
        name: &str,
        metadata: Option<&SecretJson>,
    ) -> Result<CredentialVersion, Error> {
        let metadata = metadata.map(SecretJson::exposed);
        let body = Regenerate { name, metadata };
        let call = Call::new(Method::POST, "/api/v1/regenerate").body(&body)?;
        self.execute(&call).await
    }
}

#[derive(Serialize)]
struct Generate<'a> {
    name: &'a str,
    #[serde(rename = "type")]
    credential_type: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    mode: Option<GenerateMode>,
    parameters: &'a Map<String, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<Exposed<'a>>,
}

#[derive(Serialize)]
struct Regenerate<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<Exposed<'a>>,
}
