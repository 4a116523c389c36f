//! Credentials: `/api/v1/data`, `/api/v1/regenerate` and `/api/v1/interpolate`.

use std::fmt::Write;

use clap::ValueEnum;
use keywright_json::Checked;
use reqwest::Method;
use serde::{Deserialize, Deserializer, Serialize, de::Error as _};
use serde_json::{Map, Value};

use crate::{Client, Error, SecretJson, client::Call, secret::Exposed};

/// One version of a credential.
#[derive(Clone, Debug, Deserialize)]
#[serde(remote = "Self")]
#[non_exhaustive]
pub struct CredentialVersion {
    /// The version's id.
    pub id: String,
    /// The credential's name, with a leading slash.
    pub name: String,
    /// The credential's type.
    #[serde(rename = "type")]
    pub credential_type: String,
    /// When the version was created: ISO 8601, UTC.
    pub version_created_at: String,
    /// The metadata, if any.
    pub metadata: Option<SecretJson>,
    /// The value.
    pub value: SecretJson,
    /// Whether the version is transitional. This and the next three fields are only present for certificates.
    pub transitional: Option<bool>,
    /// Whether the version is a CA certificate.
    pub certificate_authority: Option<bool>,
    /// Whether the version is self-signed.
    pub self_signed: Option<bool>,
    /// Whether the server generated the version.
    pub generated: Option<bool>,
    /// The expiry: ISO 8601, UTC.
    pub expiry_date: Option<String>,
    /// When the value should be rotated: ISO 8601, UTC. Only if its plugin returned it.
    pub rotation_date: Option<String>,
    /// The SHA-256 of the component of the plugin that generated the value, if known. This and the next three fields are only
    /// present after [`Client::current_version_with_provenance`].
    pub generated_by: Option<String>,
    /// The parameters that generated the value, an object.
    pub parameters: Option<SecretJson>,
    /// The versions of other credentials from which the value was derived.
    #[serde(default)]
    pub derived_from: Vec<DerivedFrom>,
    /// Whether plugin and parameters are the claim of the caller who set the value.
    pub imported: Option<bool>,
    /// The complete response of the server.
    #[serde(skip)]
    pub whole: SecretJson,
}

/// A version of another credential from which a value was derived.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[non_exhaustive]
pub struct DerivedFrom {
    /// The JSON Pointer of the credential's name in the parameters.
    pub parameter: String,
    /// The credential's name, with a leading slash.
    pub name: String,
    /// The id of the version. It may be deleted.
    pub version_id: String,
}

/// A found credential.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[non_exhaustive]
pub struct FoundCredential {
    /// The name.
    pub name: String,
    /// When the latest version was created: ISO 8601, UTC.
    pub version_created_at: String,
    /// The expiry, if the search is by expiry: ISO 8601, UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expiry_date: Option<String>,
    /// When the value should be rotated, if the search is by expiry and its plugin returned it: ISO 8601, UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rotation_date: Option<String>,
    /// The link of the chain that expires first, if requested by [`Find::effective`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expiring_link: Option<ExpiringLink>,
    /// Whether the plugin of the search is only the claim of the caller who imported the credential.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub imported: bool,
    /// In a search by input, whether the credential was derived from a version of the input that is not active.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stale: Option<bool>,
}

/// The link of a certificate's chain that expires first.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ExpiringLink {
    /// The name of the credential.
    pub name: String,
    /// The id of the version.
    pub version_id: String,
    /// The distance above the certificate: 0 is the certificate itself.
    pub depth: u32,
}

/// The criteria of a search. The default finds all credentials.
#[derive(Clone, Debug, Default)]
pub struct Find {
    name: Option<NameFilter>,
    expires_within_days: Option<u32>,
    is_effective: bool,
    generated_by: Option<String>,
    derived_from: Option<String>,
}

#[derive(Clone, Debug)]
enum NameFilter {
    Below(String),
    Like(String),
}

impl Find {
    /// Finds credentials below a path. An empty path finds all.
    #[must_use]
    pub fn below(path: impl Into<String>) -> Self {
        Self {
            name: Some(NameFilter::Below(path.into())),
            ..Self::default()
        }
    }

    /// Finds credentials whose names contain a text, ignoring case.
    #[must_use]
    pub fn name_like(text: impl Into<String>) -> Self {
        Self {
            name: Some(NameFilter::Like(text.into())),
            ..Self::default()
        }
    }

    /// Only finds credentials, of any type, that have expired, expire within this number of days, or should be rotated by then.
    #[must_use]
    pub fn expires_within_days(mut self, days: u32) -> Self {
        self.expires_within_days = Some(days);
        self
    }

    /// Also finds certificates that become unusable by then because a CA above them expires. Not all servers support it.
    #[must_use]
    pub fn effective(mut self) -> Self {
        self.is_effective = true;
        self
    }

    /// Only finds credentials with a current version generated by the plugin whose component has this SHA-256. Not all servers
    /// support it.
    #[must_use]
    pub fn generated_by(mut self, digest: impl Into<String>) -> Self {
        self.generated_by = Some(digest.into());
        self
    }

    /// Only finds credentials whose newest version was derived from the credential with this name. Not all servers support it.
    #[must_use]
    pub fn derived_from(mut self, input: impl Into<String>) -> Self {
        self.derived_from = Some(input.into());
        self
    }
}

/// A credential to set.
#[derive(Clone, Debug)]
pub struct SetCredential {
    name: String,
    credential_type: String,
    value: SecretJson,
    metadata: Option<SecretJson>,
    provenance: Option<(String, SecretJson)>,
}

impl SetCredential {
    /// Creates a credential from a name, a type and a value.
    pub fn new(
        name: impl Into<String>,
        credential_type: impl Into<String>,
        value: &(impl Serialize + ?Sized),
    ) -> Result<Self, Error> {
        let value = SecretJson::of(value).map_err(Error::RequestMalformed)?;
        Ok(Self {
            name: name.into(),
            credential_type: credential_type.into(),
            value,
            metadata: None,
            provenance: None,
        })
    }

    /// Adds metadata, an object. It is not encrypted.
    #[must_use]
    pub fn metadata(mut self, metadata: SecretJson) -> Self {
        self.metadata = Some(metadata);
        self
    }

    /// Adds the SHA-256 of the plugin's component and the parameters, an object, with which another server generated the value.
    /// Not all servers support it.
    #[must_use]
    pub fn provenance(mut self, generated_by: impl Into<String>, parameters: SecretJson) -> Self {
        self.provenance = Some((generated_by.into(), parameters));
        self
    }
}

/// A credential to generate.
#[derive(Clone, Debug)]
pub struct GenerateCredential {
    name: String,
    credential_type: String,
    mode: Option<GenerateMode>,
    parameters: Map<String, Value>,
    metadata: Option<SecretJson>,
}

/// The behavior of a generation if the credential exists. Servers default to `Converge`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum GenerateMode {
    /// Add a version if the parameters differ.
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
    /// Returns the active version of a credential: the latest version or, for a certificate, the latest version that is not
    /// transitional.
    pub async fn current_version(&self, name: &str) -> Result<CredentialVersion, Error> {
        let versions = self.current_versions(name).await?;
        versions.into_iter().next().ok_or(Error::ResponseEmpty)
    }

    /// Like [`Client::current_version`], with the provenance if the server knows it.
    pub async fn current_version_with_provenance(
        &self,
        name: &str,
    ) -> Result<CredentialVersion, Error> {
        let response: Versions = self.execute(&current(name, Some("true"))).await?;
        response.data.into_iter().next().ok_or(Error::ResponseEmpty)
    }

    /// Returns the active version, followed by a certificate's transitional version, if any.
    pub async fn current_versions(&self, name: &str) -> Result<Vec<CredentialVersion>, Error> {
        self.execute::<Versions>(&current(name, None))
            .await
            .map(|response| response.data)
    }

    /// Returns at most `versions_max` versions of a credential, or all, newest first.
    pub async fn versions(
        &self,
        name: &str,
        versions_max: Option<u32>,
    ) -> Result<Vec<CredentialVersion>, Error> {
        let versions = versions_max.map(|count| count.to_string());
        let call = Call::new(Method::GET, DATA)
            .query("name", name)
            .query_if("versions", versions.as_deref());
        self.execute::<Versions>(&call)
            .await
            .map(|response| response.data)
    }

    /// Returns the version with this id.
    pub async fn version_by_id(&self, id: &str) -> Result<CredentialVersion, Error> {
        self.execute(&Call::new(Method::GET, format!("{DATA}/{}", segment(id))))
            .await
    }

    /// Sets a credential. Adds a version if the credential exists.
    pub async fn set_credential(
        &self,
        credential: &SetCredential,
    ) -> Result<CredentialVersion, Error> {
        let SetCredential {
            name,
            credential_type,
            value,
            metadata,
            provenance,
        } = credential;
        let provenance = provenance.as_ref();
        let body = SetBody {
            name,
            credential_type,
            value: value.exposed(),
            metadata: metadata.as_ref().map(SecretJson::exposed),
            generated_by: provenance.map(|(digest, _)| digest.as_str()),
            parameters: provenance.map(|(_, parameters)| parameters.exposed()),
        };
        self.execute(&Call::new(Method::PUT, DATA).body(&body)?)
            .await
    }

    /// Finds credentials that the caller may read, newest first. Omits certificates whose only version is transitional.
    pub async fn find_credentials(&self, find: &Find) -> Result<Vec<FoundCredential>, Error> {
        let call = Call::new(Method::GET, DATA);
        let call = match &find.name {
            None => call.query("path", ""),
            Some(NameFilter::Below(path)) => call.query("path", path),
            Some(NameFilter::Like(text)) => call.query("name-like", text),
        };
        let days = find.expires_within_days.map(|days| days.to_string());
        let call = call
            .query_if("expires-within-days", days.as_deref())
            .query_if("effective", find.is_effective.then_some("true"))
            .query_if("generated_by", find.generated_by.as_deref())
            .query_if("derived_from", find.derived_from.as_deref());
        let found: Found = self.execute(&call).await?;
        Ok(found.credentials)
    }

    /// Deletes a credential with all its versions.
    pub async fn delete_credential(&self, name: &str) -> Result<(), Error> {
        self.execute_without_result(&Call::new(Method::DELETE, DATA).query("name", name))
            .await
    }

    /// Generates a credential, or returns the existing version: see [`GenerateMode`].
    pub async fn generate_credential(
        &self,
        credential: &GenerateCredential,
    ) -> Result<CredentialVersion, Error> {
        let body = GenerateBody {
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
    pub async fn regenerate_credential(
        &self,
        name: &str,
        metadata: Option<&SecretJson>,
    ) -> Result<CredentialVersion, Error> {
        let metadata = metadata.map(SecretJson::exposed);
        let body = RegenerateBody { name, metadata };
        let call = Call::new(Method::POST, "/api/v1/regenerate").body(&body)?;
        self.execute(&call).await
    }

    /// Substitutes the credential references in a document of service bindings. The rest of the document, and the order of its
    /// fields, is unchanged.
    pub async fn interpolate(&self, document: &str) -> Result<SecretJson, Error> {
        let document = keywright_json::raw(document);
        let document = document.map_err(|cause| Error::RequestMalformed(cause.into()))?;
        let call = Call::new(Method::POST, "/api/v1/interpolate");
        self.execute(&call.body(&document)?).await
    }
}

impl<'de> Deserialize<'de> for CredentialVersion {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Fields(#[serde(with = "CredentialVersion")] CredentialVersion);

        let whole = SecretJson::deserialize(deserializer)?;
        let fields = keywright_json::check_response(whole.expose());
        let Fields(version) = fields.and_then(Checked::read).map_err(D::Error::custom)?;
        Ok(Self { whole, ..version })
    }
}

/// Returns the request for the active version and a certificate's transitional version.
fn current(name: &str, provenance: Option<&str>) -> Call {
    Call::new(Method::GET, DATA)
        .query("current", "true")
        .query_if("provenance", provenance)
        .query("name", name)
}

/// Percent-encodes text as a path segment: all bytes except letters, digits and `-._~`.
pub(crate) fn segment(text: &str) -> String {
    let mut encoded = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            // Writing to a string does not fail.
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}

#[derive(Deserialize)]
struct Found {
    credentials: Vec<FoundCredential>,
}

#[derive(Deserialize)]
struct Versions {
    data: Vec<CredentialVersion>,
}

#[derive(Serialize)]
struct SetBody<'a> {
    name: &'a str,
    #[serde(rename = "type")]
    credential_type: &'a str,
    value: Exposed<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<Exposed<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    generated_by: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parameters: Option<Exposed<'a>>,
}

#[derive(Serialize)]
struct GenerateBody<'a> {
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
struct RegenerateBody<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<Exposed<'a>>,
}

const DATA: &str = "/api/v1/data";
