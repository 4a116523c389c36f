//! Versions of credentials: their attributes, which are stored unencrypted, and their content, which is stored encrypted.
//!
//! The content is one JSON text: the value, the parameters, the metadata, the other trusted CA certificate, the versions from which
//! the value was derived, and the actor that chose the parameters. It also contains the name and the type of the credential, so
//! that a change of either in the database is detected.

use std::{collections::BTreeMap, fmt};

use chrono::{DateTime, Utc};
use keywright_json::JsonError;
use serde::Serialize;
use serde_json::{Map, Value, value::RawValue};
use uuid::Uuid;

use crate::{
    Secret, UseCaseError,
    certificate::CertificateFacts,
    credential::{CredentialName, CredentialType, InputVersion, LookupName},
    permission::Actor,
    ports::{Envelope, SealError},
};

/// The attributes of a version that are stored unencrypted. Only the transitional flag changes later.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VersionAttributes {
    /// Whether the version has the transitional flag.
    pub is_transitional: bool,
    /// Whether the server generated it; `None` (unknown) for versions that a caller added by the certificate's id.
    pub is_generated: Option<bool>,
    /// The facts of the certificate in its value; for another type, of the certificate that its issuer signed or that the
    /// plugin's value schema names.
    pub certificate: Option<CertificateFacts>,
    /// The name of the credential that signed it, if known. A self-signed certificate names itself. For types other than
    /// certificate, the name of its issuer.
    pub signed_by: Option<CredentialName>,
    /// The issuer; `None` if the version is self-signed or its issuer is unknown.
    pub issuer: Option<IssuerVersion>,
    /// The lifetime that the plugin returned for the value. Empty if there is a certificate.
    pub lifetime: Lifetime,
    /// The plugin that generated it; `None` if it was set without provenance. The claim of a caller if `is_generated` is not
    /// `Some(true)`.
    pub provenance: Option<PluginIdentity>,
}

impl VersionAttributes {
    /// Returns the time from which the value should not be used any more: when it should be rotated, or else its expiry.
    pub fn due_at(&self) -> Option<DateTime<Utc>> {
        let Lifetime {
            expires_at,
            rotate_at,
        } = self.lifetime;
        let certificate = self.certificate.as_ref().map(|facts| facts.expires_at);
        rotate_at.or(expires_at).or(certificate)
    }
}

/// When a value expires and when it should be rotated, according to its plugin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lifetime {
    /// The time from which it must not be used; `None` if it does not expire.
    pub expires_at: Option<DateTime<Utc>>,
    /// The time from which it should be replaced, not after its expiry; `None` if it need not be replaced before.
    pub rotate_at: Option<DateTime<Utc>>,
}

/// An encrypted version, as stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredVersion {
    /// The id of the version.
    pub id: Uuid,
    /// Its position in the order of all versions of all credentials. Newer versions have greater numbers.
    pub sequence: i64,
    /// The id of the credential.
    pub credential_id: Uuid,
    /// The credential's name, with the casing of its first version.
    pub name: CredentialName,
    /// The credential's type.
    pub credential_type: CredentialType,
    /// The time of its creation.
    pub created_at: DateTime<Utc>,
    /// Its unencrypted attributes.
    pub attributes: VersionAttributes,
    /// Its content, encrypted.
    pub envelope: Envelope,
}

impl StoredVersion {
    /// Returns whether it is a CA certificate according to its basic constraints.
    pub(super) fn is_authority(&self) -> bool {
        let facts = self.attributes.certificate.as_ref();
        self.credential_type.is_certificate()
            && facts.is_some_and(|facts| facts.is_certificate_authority)
    }

    pub(super) fn as_issuer(&self) -> Option<IssuerVersion> {
        let facts = self.attributes.certificate.as_ref();
        facts.map(|facts| IssuerVersion {
            version_id: Some(self.id),
            expires_at: facts.expires_at,
        })
    }
}

/// The issuer of a certificate at the time when the certificate's version was added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IssuerVersion {
    /// The CA version, if it was stored. It may have been deleted.
    pub version_id: Option<Uuid>,
    /// The end of the CA certificate's validity.
    pub expires_at: DateTime<Utc>,
}

/// The exact identity of the plugin that generated a value. An imported identity is a digest; its other fields are empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PluginIdentity {
    /// Its configured name.
    pub name: String,
    /// Its own version.
    pub version: String,
    /// SHA-256 of its component, in lower-case hexadecimal.
    pub digest: String,
    /// The version of the WIT package that it was built against.
    pub interface_version: String,
}

impl PluginIdentity {
    /// Returns the identity of a plugin of which only the digest is known.
    pub(super) fn of_digest(digest: PluginDigest) -> Self {
        Self {
            name: String::new(),
            version: String::new(),
            digest: digest.0,
            interface_version: String::new(),
        }
    }
}

/// The maximum length of metadata, in characters of JSON text.
pub const METADATA_CHARACTERS_MAX: usize = 7_000;

/// The metadata of one version: JSON text within the limit.
#[derive(Clone, Debug)]
pub struct Metadata(Secret);

impl Metadata {
    /// Wraps a caller's metadata, JSON text without insignificant whitespace. It is stored as written, so that numbers keep
    /// all their digits.
    pub fn parse(json: Secret) -> Result<Self, MetadataError> {
        if json.expose().chars().count() > METADATA_CHARACTERS_MAX {
            return Err(MetadataError);
        }
        Ok(Self(json))
    }

    pub(crate) fn from_stored(text: Secret) -> Self {
        Self(text)
    }

    /// Returns the metadata as JSON text.
    pub fn json(&self) -> &Secret {
        &self.0
    }
}

/// Metadata longer than [`METADATA_CHARACTERS_MAX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("metadata must have at most {METADATA_CHARACTERS_MAX} characters")]
pub struct MetadataError;

/// SHA-256 of a plugin's component, in lower-case hexadecimal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PluginDigest(String);

/// A malformed digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a digest must be {EXPECTED}")]
pub struct DigestError;

impl PluginDigest {
    /// Parses 64 hexadecimal digits in any case, with or without the prefix `sha256:`.
    pub fn parse(text: &str) -> Result<Self, DigestError> {
        let digits = text.strip_prefix(PREFIX).unwrap_or(text);
        if digits.len() != DIGITS || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return Err(DigestError);
        }
        Ok(Self(digits.to_ascii_lowercase()))
    }

    /// Returns the digits in lower case, their stored form.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl DigestError {
    /// The expected form, for error messages.
    pub const EXPECTED: &str = EXPECTED;
}

const EXPECTED: &str = "`sha256:` followed by 64 hexadecimal digits";
const PREFIX: &str = "sha256:";
const DIGITS: usize = 64;

/// The content of a version that is stored encrypted.
#[derive(Clone, Debug)]
pub struct Content {
    /// The value, as JSON text.
    pub value: Secret,
    /// The canonical parameters, as JSON text: parsed ones may need a hundred times as much memory. `None` if the value was set
    /// without provenance.
    pub parameters: Option<Secret>,
    /// The caller's metadata.
    pub metadata: Option<Metadata>,
    /// The other trusted certificate of the CA, PEM: the transitional one, or the active one if the transitional one signed.
    /// Stored so that responses can contain both during a rotation.
    pub trusted_ca: Option<String>,
    /// The versions from which the value was derived.
    pub inputs: Vec<InputVersion>,
    /// The actor that chose the parameters; `None` for values that were set without provenance, and for versions of older releases.
    /// Stored even if no parameter names an input, because a later release of the plugin may read a parameter as an input.
    pub chosen_by: Option<Actor>,
}

impl Content {
    pub(super) fn of_value(value: Secret) -> Self {
        Self {
            value,
            parameters: None,
            metadata: None,
            trusted_ca: None,
            inputs: Vec::new(),
            chosen_by: None,
        }
    }

    /// Parses the parameters.
    pub(crate) fn parsed_parameters(&self) -> Result<Option<Parameters>, UseCaseError> {
        let text = self.parameters.as_ref().map(Secret::expose);
        text.map(Parameters::parse).transpose()
    }

    /// Returns the text to encrypt for a credential with this name, including its casing, and this type.
    pub(crate) fn to_plaintext(
        &self,
        name: &CredentialName,
        credential_type: &CredentialType,
    ) -> Result<Secret, UseCaseError> {
        let parameters = self.parameters.as_ref().map(Secret::expose);
        let metadata = self
            .metadata
            .as_ref()
            .map(|metadata| metadata.json().expose());
        let inputs = if self.inputs.is_empty() {
            None
        } else {
            let inputs = serde_json::to_string(&self.inputs);
            Some(inputs.map_err(|_| UseCaseError::StoredValueMalformed)?)
        };
        let plaintext = Plaintext {
            value: raw(self.value.expose())?,
            parameters: parameters.map(raw).transpose()?,
            metadata: metadata.map(raw).transpose()?,
            trusted_ca: self.trusted_ca.as_deref(),
            inputs: inputs.as_deref().map(raw).transpose()?,
            chosen_by: self.chosen_by.as_ref().map(Actor::as_str),
            credential_name: name.as_str(),
            credential_type: credential_type.as_str(),
        };
        let copied = [
            self.value.expose(),
            parameters.unwrap_or_default(),
            metadata.unwrap_or_default(),
            inputs.as_deref().unwrap_or_default(),
        ];
        let escaped = [
            name.as_str(),
            credential_type.as_str(),
            self.trusted_ca.as_deref().unwrap_or_default(),
            self.chosen_by.as_ref().map_or("", Actor::as_str),
        ];
        let bytes = |texts: &[&str]| texts.iter().map(|text| text.len()).sum::<usize>();
        let bytes_max = bytes(&copied) + ESCAPED_BYTES_MAX * bytes(&escaped);
        to_secret(&plaintext, bytes_max)
    }

    /// Parses the decrypted content of a version.
    ///
    /// # Errors
    /// [`SealError::NotAuthentic`] if it was encrypted for a credential with another type or another casing of the name: the
    /// casing decides about permissions, and the type about the plugin that gets the value.
    pub(crate) fn of_version(
        plaintext: &Secret,
        version: &StoredVersion,
    ) -> Result<Self, UseCaseError> {
        let fields = plaintext_fields(plaintext)?;
        if SealedFor::of(&fields)?.differences(version) != (false, false) {
            return Err(SealError::NotAuthentic.into());
        }
        Self::of(&fields)
    }

    pub(crate) fn from_plaintext(plaintext: &Secret) -> Result<Self, UseCaseError> {
        Self::of(&plaintext_fields(plaintext)?)
    }

    fn of(fields: &[(String, &RawValue)]) -> Result<Self, UseCaseError> {
        let malformed = |_| UseCaseError::StoredValueMalformed;
        let field = |name| {
            let found = fields.iter().find(|(key, _)| key == name);
            found.map(|(_, text)| text.get())
        };
        // A plugin's value may be null. Other fields that are null count as missing.
        let value = field("value").ok_or(UseCaseError::StoredValueMalformed)?;
        let field = |name| field(name).filter(|text| *text != "null");
        let text = |name| {
            let text = field(name).map(keywright_json::text).transpose();
            text.map_err(malformed)
        };
        let inputs = field("inputs").map(keywright_json::read).transpose();
        Ok(Self {
            value: Secret::new(value.to_owned()),
            parameters: field("parameters").map(|text| Secret::new(text.to_owned())),
            metadata: field("metadata")
                .map(|text| Metadata::from_stored(Secret::new(text.to_owned()))),
            trusted_ca: text("trusted_ca")?,
            inputs: inputs.map_err(malformed)?.unwrap_or_default(),
            chosen_by: text("chosen_by")?.map(Actor::from_stored),
        })
    }
}

/// The canonical parameters of a generated version, as normalized by its generator.
#[derive(Clone, Default, PartialEq)]
pub struct Parameters(Map<String, Value>);

impl Parameters {
    /// Wraps a JSON object of parameters.
    pub fn new(fields: Map<String, Value>) -> Self {
        Self(fields)
    }

    /// Parses the text of [`Parameters::to_json`].
    pub(crate) fn parse(json: &str) -> Result<Self, UseCaseError> {
        let fields = keywright_json::read(json);
        fields
            .map(Self)
            .map_err(|_| UseCaseError::StoredValueMalformed)
    }

    /// Returns the parameters as JSON text.
    pub fn to_json(&self) -> String {
        // Writing a map to a string can't fail.
        serde_json::to_string(&self.0).unwrap_or_default()
    }

    /// Returns the JSON object of parameters.
    pub fn into_fields(self) -> Map<String, Value> {
        self.0
    }

    /// Returns the approximate memory of the parsed parameters, in bytes: up to a hundred times their text.
    pub(super) fn memory_bytes(&self) -> usize {
        fn values(value: &Value) -> usize {
            1 + match value {
                Value::Array(items) => items.iter().map(values).sum(),
                Value::Object(fields) => fields.values().map(values).sum(),
                _ => 0,
            }
        }
        self.0.values().map(values).sum::<usize>() * PARSED_VALUE_BYTES
    }

    /// Returns the named parameter, or `None` if it is missing or null.
    pub fn field(&self, name: &str) -> Option<&Value> {
        self.0.get(name).filter(|value| !value.is_null())
    }

    /// Returns the named parameter if it is a string.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.field(name).and_then(Value::as_str)
    }

    /// Returns whether the named parameter is `true`.
    pub fn is_true(&self, name: &str) -> bool {
        self.field(name) == Some(&Value::Bool(true))
    }

    pub(crate) fn insert(&mut self, name: &str, value: Value) {
        self.0.insert(name.to_owned(), value);
    }

    pub(crate) fn remove(&mut self, name: &str) -> Option<Value> {
        self.0.remove(name)
    }

    /// Returns the parameters whose names satisfy the predicate.
    pub fn retain(mut self, is_kept: impl Fn(&str) -> bool) -> Self {
        self.0.retain(|name, _| is_kept(name));
        self
    }

    /// Returns the parameters except parameters with these names, in any order.
    pub(crate) fn without(mut self, names: &[String]) -> Self {
        for name in names {
            self.0.remove(name);
        }
        self
    }

    /// Returns whether a value generated with `self` satisfies `requested`.
    ///
    /// Parameters compare by value. A missing parameter equals null. The issuer's name compares case-insensitively, and a
    /// missing name matches any name, because a certificate that was set may not name its signer. Strings of the parameters in
    /// `folded` compare case-insensitively and without leading and trailing whitespace.
    pub fn satisfies(
        &self,
        requested: &Self,
        issuer_parameter: Option<&str>,
        folded: &[&str],
    ) -> bool {
        let names = self.0.keys().chain(requested.0.keys());
        names.into_iter().all(|name| {
            let (stored, requested) = (self.field(name), requested.field(name));
            let texts = stored
                .and_then(Value::as_str)
                .zip(requested.and_then(Value::as_str));
            if issuer_parameter == Some(name.as_str()) {
                return texts.is_none_or(|(stored, requested)| {
                    LookupName::new(stored) == LookupName::new(requested)
                });
            }
            if let Some((stored, requested)) = texts
                && folded.contains(&name.as_str())
            {
                return stored.trim().to_lowercase() == requested.trim().to_lowercase();
            }
            stored == requested
        })
    }
}

impl fmt::Debug for Parameters {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Parameters(redacted)")
    }
}

/// A version with its decrypted content.
#[derive(Clone, Debug)]
pub struct CredentialVersion {
    /// The id of the version.
    pub id: Uuid,
    /// The id of the credential.
    pub credential_id: Uuid,
    /// The credential's name, with the casing of its first version.
    pub name: CredentialName,
    /// The credential's type.
    pub credential_type: CredentialType,
    /// The time of its creation. Informational; versions are ordered by sequence.
    pub created_at: DateTime<Utc>,
    /// Its unencrypted attributes.
    pub attributes: VersionAttributes,
    /// Its decrypted content.
    pub content: Content,
}

impl CredentialVersion {
    pub(super) fn new(stored: StoredVersion, content: Content) -> Self {
        Self {
            id: stored.id,
            credential_id: stored.credential_id,
            name: stored.name,
            credential_type: stored.credential_type,
            created_at: stored.created_at,
            attributes: stored.attributes,
            content,
        }
    }

    /// Returns the digest of the component that generated the value, and the canonical parameters; `None` if the value was set
    /// without provenance. Both are the claim of the caller who set the value if [`VersionAttributes::is_generated`] is not
    /// `Some(true)`.
    pub fn provenance(&self) -> Option<(&str, &Secret)> {
        let plugin = self.attributes.provenance.as_ref()?;
        Some((&plugin.digest, self.content.parameters.as_ref()?))
    }
}

/// The credential that a version was encrypted for. Fields are `None` for versions of older releases that did not encrypt
/// them.
pub(crate) struct SealedFor {
    /// The name of the credential, including its casing.
    pub(crate) name: Option<String>,
    pub(crate) credential_type: Option<String>,
}

impl SealedFor {
    /// Parses the fields from decrypted content.
    pub(crate) fn from_plaintext(plaintext: &Secret) -> Result<Self, UseCaseError> {
        Self::of(&plaintext_fields(plaintext)?)
    }

    fn of(fields: &[(String, &RawValue)]) -> Result<Self, UseCaseError> {
        let malformed = |_| UseCaseError::StoredValueMalformed;
        let field = |name| {
            let found = fields.iter().find(|(key, _)| key == name);
            found.map(|(_, text)| keywright_json::text(text.get()))
        };
        Ok(Self {
            name: field("credential_name").transpose().map_err(malformed)?,
            credential_type: field("credential_type").transpose().map_err(malformed)?,
        })
    }

    /// Returns whether the name and whether the type of the version's credential differ.
    pub(crate) fn differences(&self, version: &StoredVersion) -> (bool, bool) {
        let differs = |sealed: &Option<String>, found: &str| {
            sealed.as_ref().is_some_and(|sealed| sealed != found)
        };
        (
            differs(&self.name, version.name.as_str()),
            differs(&self.credential_type, version.credential_type.as_str()),
        )
    }
}

fn plaintext_fields(plaintext: &Secret) -> Result<Vec<(String, &RawValue)>, UseCaseError> {
    let fields = keywright_json::fields(plaintext.expose());
    fields.map_err(|_| UseCaseError::StoredValueMalformed)
}

/// The JSON to encrypt. Its fields are raw, so that values are not parsed.
#[derive(Serialize)]
struct Plaintext<'a> {
    value: &'a RawValue,
    #[serde(skip_serializing_if = "Option::is_none")]
    parameters: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    trusted_ca: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    inputs: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    chosen_by: Option<&'a str>,
    credential_name: &'a str,
    credential_type: &'a str,
}

/// Writes JSON into one buffer: a buffer that grows leaves parts of a secret in freed memory. `bytes_max` is the maximum size of
/// the JSON without its keys and punctuation.
pub(super) fn to_secret(json: &impl Serialize, bytes_max: usize) -> Result<Secret, UseCaseError> {
    let mut text = Vec::with_capacity(KEYS_BYTES_MAX + bytes_max);
    serde_json::to_writer(&mut text, json).map_err(|_| UseCaseError::StoredValueMalformed)?;
    let text = String::from_utf8(text).map_err(|_| UseCaseError::StoredValueMalformed)?;
    Ok(Secret::new(text))
}

/// The maximum size of the keys and the punctuation of [`Plaintext`], in bytes.
const KEYS_BYTES_MAX: usize = 256;

/// The maximum size of an escaped byte of a string in JSON, in bytes.
pub(super) const ESCAPED_BYTES_MAX: usize = 6;

fn raw(text: &str) -> Result<&RawValue, UseCaseError> {
    keywright_json::raw(text).map_err(|_| UseCaseError::StoredValueMalformed)
}

/// The fields of a certificate's value as JSON texts.
pub(super) type Fields<'a> = BTreeMap<String, &'a RawValue>;

pub(super) fn fields(value: &Secret) -> Result<Fields<'_>, JsonError> {
    Ok(keywright_json::fields(value.expose())?
        .into_iter()
        .collect())
}

/// Removes a string field. An empty string and null count as missing.
pub(super) fn take_text(
    fields: &mut Fields<'_>,
    name: &str,
) -> Result<Option<String>, UseCaseError> {
    let Some(field) = fields.remove(name).filter(|field| field.get() != "null") else {
        return Ok(None);
    };
    let text = keywright_json::text(field.get());
    let text = text.map_err(|_| UseCaseError::ValueRefused(format!("{name} must be a string")))?;
    Ok(Some(text).filter(|text| !text.is_empty()))
}

/// The approximate memory of a value in an array or object.
const PARSED_VALUE_BYTES: usize = 128;

#[cfg(test)]
mod tests;
