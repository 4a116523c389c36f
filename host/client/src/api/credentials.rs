//! Credentials: `/api/v1/data`.

use std::fmt::Write;

use reqwest::Method;
use serde::{Deserialize, Serialize};

use crate::{Client, Error, SecretJson, client::Call};

/// One version of a credential.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "SecretJson")]
#[non_exhaustive]
pub struct CredentialVersion {
    /// The id of this version.
    pub id: String,
    /// The credential's name, with a slash before it.
    pub name: String,
    /// The credential's type.
    pub credential_type: String,
    /// When the version was made: ISO 8601, UTC.
    pub version_created_at: String,
    /// What the caller has told of it besides, where that is anything; an object, where the caller was a command line.
    pub metadata: Option<SecretJson>,
    /// The value.
    pub value: SecretJson,
    /// Whether a certificate's version is transitional; none of the following is there for other types.
    pub transitional: Option<bool>,
    /// Whether it may sign.
    pub certificate_authority: Option<bool>,
    /// Whether it is signed by itself.
    pub self_signed: Option<bool>,
    /// Whether the server made it.
    pub generated: Option<bool>,
    /// When it expires: ISO 8601, UTC.
    pub expiry_date: Option<String>,
    /// All that the server has answered, this and more.
    pub whole: SecretJson,
}

/// A credential that was found.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[non_exhaustive]
pub struct FoundCredential {
    /// Its name.
    pub name: String,
    /// When its newest version was made: ISO 8601, UTC.
    pub version_created_at: String,
    /// When it expires, where credentials were asked for that do: ISO 8601, UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expiry_date: Option<String>,
    /// What of its chain expires first, where that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expiring_link: Option<ExpiringLink>,
}

/// The link of a certificate's chain that expires before all others.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ExpiringLink {
    /// The name of the credential.
    pub name: String,
    /// The id of its version.
    pub version_id: String,
    /// How far it is above the certificate: 0 is the certificate itself.
    pub depth: u32,
}

/// Which credentials to find: all of them, unless more is said.
#[derive(Clone, Debug, Default)]
pub struct Find {
    place: Option<Place>,
    expires_within_days: Option<u32>,
    is_effective: bool,
    generated_by: Option<String>,
}

#[derive(Clone, Debug)]
enum Place {
    Below(String),
    Like(String),
}

impl Find {
    /// Credentials below a path; all of them below an empty one.
    #[must_use]
    pub fn below(path: impl Into<String>) -> Self {
        Self {
            place: Some(Place::Below(path.into())),
            ..Self::default()
        }
    }

    /// Credentials whose names hold a text, in whatever case.
    #[must_use]
    pub fn name_like(text: impl Into<String>) -> Self {
        Self {
            place: Some(Place::Like(text.into())),
            ..Self::default()
        }
    }

    /// Of these, credentials with a certificate, whatever their type, that expires within so many days, or has.
    #[must_use]
    pub fn expires_within_days(mut self, days: u32) -> Self {
        self.expires_within_days = Some(days);
        self
    }

    /// Certificates that are of no use any more by then, because anything above them has expired. Not all servers know it.
    #[must_use]
    pub fn effective(mut self) -> Self {
        self.is_effective = true;
        self
    }

    /// Of these, credentials of which this plugin made a version that counts: the SHA-256 of its component. Not all servers know
    /// it.
    #[must_use]
    pub fn generated_by(mut self, digest: impl Into<String>) -> Self {
        self.generated_by = Some(digest.into());
        self
    }
}

/// A credential to be set.
#[derive(Clone, Debug)]
pub struct SetCredential {
    name: String,
    credential_type: String,
    value: SecretJson,
    metadata: Option<SecretJson>,
}

impl SetCredential {
    /// A credential of this name, type and value.
    ///
    /// # Errors
    /// When the value has no form in JSON.
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
        })
    }

    /// The same with metadata, an object. It is not encrypted.
    #[must_use]
    pub fn metadata(mut self, metadata: SecretJson) -> Self {
        self.metadata = Some(metadata);
        self
    }
}

impl Client {
    /// The version of a credential that is in use: the newest one, and of a certificate the newest one that is not
    /// transitional.
    ///
    /// # Errors
    /// When there is no such credential, or the caller may not read it; and as any request.
    pub async fn current_version(&self, name: &str) -> Result<CredentialVersion, Error> {
        let versions = self.current_versions(name).await?;
        versions.into_iter().next().ok_or(Error::AnswerEmpty)
    }

    /// The version that is in use, and after it a certificate's transitional version, where there is one.
    ///
    /// # Errors
    /// As [`Client::current_version`].
    pub async fn current_versions(&self, name: &str) -> Result<Vec<CredentialVersion>, Error> {
        let call = Call::new(Method::GET, DATA)
            .query("current", "true")
            .query("name", name);
        self.ask::<Versions>(&call).await.map(|answer| answer.data)
    }

    /// The versions of a credential, newest first: so many of them, or all.
    ///
    /// # Errors
    /// As [`Client::current_version`].
    pub async fn versions(
        &self,
        name: &str,
        versions_max: Option<u32>,
    ) -> Result<Vec<CredentialVersion>, Error> {
        let versions = versions_max.map(|count| count.to_string());
        let call = Call::new(Method::GET, DATA)
            .query("name", name)
            .query_if("versions", versions.as_deref());
        self.ask::<Versions>(&call).await.map(|answer| answer.data)
    }

    /// One version by its id.
    ///
    /// # Errors
    /// When there is no such version, or the caller may not read it; and as any request.
    pub async fn version_by_id(&self, id: &str) -> Result<CredentialVersion, Error> {
        self.ask(&Call::new(Method::GET, format!("{DATA}/{}", segment(id))))
            .await
    }

    /// Sets a credential, which adds a version to one that is there.
    ///
    /// # Errors
    /// When the name or the value is refused, or the caller may not write it; and as any request.
    pub async fn set_credential(
        &self,
        credential: &SetCredential,
    ) -> Result<CredentialVersion, Error> {
        let SetCredential {
            name,
            credential_type,
            value,
            metadata,
        } = credential;
        let body = SetBody {
            name,
            credential_type,
            value: value.exposed(),
            metadata: metadata.as_ref().map(SecretJson::exposed),
        };
        self.ask(&Call::new(Method::PUT, DATA).body(&body)?).await
    }

    /// Finds credentials that the caller may read, newest first. A certificate that has nothing but a transitional version
    /// is not among them.
    ///
    /// # Errors
    /// As any request.
    pub async fn find_credentials(&self, find: &Find) -> Result<Vec<FoundCredential>, Error> {
        let call = Call::new(Method::GET, DATA);
        let call = match &find.place {
            None => call.query("path", ""),
            Some(Place::Below(path)) => call.query("path", path),
            Some(Place::Like(text)) => call.query("name-like", text),
        };
        let days = find.expires_within_days.map(|days| days.to_string());
        let call = call
            .query_if("expires-within-days", days.as_deref())
            .query_if("effective", find.is_effective.then_some("true"))
            .query_if("generated_by", find.generated_by.as_deref());
        let found: Found = self.ask(&call).await?;
        Ok(found.credentials)
    }

    /// Deletes a credential with all its versions.
    ///
    /// # Errors
    /// When there is no such credential, or the caller may not delete it; and as any request.
    pub async fn delete_credential(&self, name: &str) -> Result<(), Error> {
        self.tell(&Call::new(Method::DELETE, DATA).query("name", name))
            .await
    }
}

impl TryFrom<SecretJson> for CredentialVersion {
    type Error = serde_json::Error;

    fn try_from(whole: SecretJson) -> Result<Self, serde_json::Error> {
        let members: VersionMembers = keywright_json::check_response(whole.expose())?.read()?;
        Ok(Self {
            id: members.id,
            name: members.name,
            credential_type: members.credential_type,
            version_created_at: members.version_created_at,
            metadata: members.metadata,
            value: members.value,
            transitional: members.transitional,
            certificate_authority: members.certificate_authority,
            self_signed: members.self_signed,
            generated: members.generated,
            expiry_date: members.expiry_date,
            whole,
        })
    }
}

/// Text as a segment of a path: what is neither a letter nor a digit nor one of `-._~` is encoded.
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
struct VersionMembers {
    id: String,
    name: String,
    #[serde(rename = "type")]
    credential_type: String,
    version_created_at: String,
    metadata: Option<SecretJson>,
    value: SecretJson,
    transitional: Option<bool>,
    certificate_authority: Option<bool>,
    self_signed: Option<bool>,
    generated: Option<bool>,
    expiry_date: Option<String>,
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
    value: crate::secret::Exposed<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<crate::secret::Exposed<'a>>,
}

/// The address of credentials.
pub(super) const DATA: &str = "/api/v1/data";
