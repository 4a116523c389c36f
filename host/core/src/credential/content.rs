//! The encrypted content of a version as one JSON text: its value, its parameters, its metadata, the other trusted CA
//! certificate, the versions from which it was derived, and the actor that chose the parameters. It also contains the name and the
//! type of the credential, so that a change of either in the database is detected.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use keywright_json::JsonError;
use serde::Serialize;
use serde_json::value::RawValue;
use uuid::Uuid;
use zeroize::Zeroizing;

use crate::{
    Secret, UseCaseError,
    credential::{
        CredentialName, CredentialType, InputVersion, Metadata, Parameters, StoredVersion,
        VersionAttributes,
    },
    permission::Actor,
    ports::{CertificateFields, SealError},
};

/// The content of a version that is stored encrypted.
#[derive(Clone, Debug)]
pub struct Content {
    /// The value, as JSON text.
    pub value: Secret,
    /// The canonical parameters; `None` if the value was set without provenance.
    pub parameters: Option<Parameters>,
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

    /// Returns the text to encrypt for a credential with this name, including its casing, and this type.
    pub(crate) fn to_plaintext(
        &self,
        name: &CredentialName,
        credential_type: &CredentialType,
    ) -> Result<Secret, UseCaseError> {
        let parameters = self.parameters.as_ref().map(Parameters::to_json);
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
            parameters: parameters.as_deref().map(raw).transpose()?,
            metadata: metadata.map(raw).transpose()?,
            trusted_ca: self.trusted_ca.as_deref(),
            inputs: inputs.as_deref().map(raw).transpose()?,
            chosen_by: self.chosen_by.as_ref().map(Actor::as_str),
            credential_name: name.as_str(),
            credential_type: credential_type.as_str(),
        };
        let copied = [
            self.value.expose(),
            parameters.as_deref().unwrap_or_default(),
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
            parameters: field("parameters").map(Parameters::parse).transpose()?,
            metadata: field("metadata")
                .map(|text| Metadata::from_stored(Secret::new(text.to_owned()))),
            trusted_ca: text("trusted_ca")?,
            inputs: inputs.map_err(malformed)?.unwrap_or_default(),
            chosen_by: text("chosen_by")?.map(Actor::from_stored),
        })
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
    pub fn provenance(&self) -> Option<(&str, &Parameters)> {
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

#[derive(Clone)]
pub(crate) struct StoredCertificate {
    pub(crate) ca: Option<String>,
    pub(crate) certificate: Option<String>,
    pub(crate) private_key: Option<Secret>,
}

impl StoredCertificate {
    pub(crate) fn parse(value: &Secret) -> Result<Self, UseCaseError> {
        let mut fields = fields(value).map_err(|_| UseCaseError::StoredValueMalformed)?;
        let mut take =
            |name| take_text(&mut fields, name).map_err(|_| UseCaseError::StoredValueMalformed);
        Ok(Self {
            ca: take("ca")?,
            certificate: take("certificate")?,
            private_key: take("private_key")?.map(Secret::new),
        })
    }

    pub(crate) fn fields(&self) -> CertificateFields<'_> {
        CertificateFields {
            ca: self.ca.as_deref(),
            certificate: self.certificate.as_deref(),
            private_key: self.private_key.as_ref(),
            ca_is_stored: false,
        }
    }
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

/// The maximum size of a value, in bytes: of the text if the value is a string, otherwise of its JSON.
pub const VALUE_BYTES_MAX: usize = 65_536;

/// The maximum length of `public_key` and `username` in a value, in characters.
pub const LONG_FIELD_CHARACTERS_MAX: usize = 7_000;

const LONG_FIELDS: [&str; 2] = ["public_key", "username"];

/// Checks the size of a value and of its fields.
///
/// # Errors
/// [`UseCaseError::ValueTooLarge`], with the name of the part that is too large.
pub(crate) fn check_size(value: &Secret) -> Result<(), UseCaseError> {
    let json = value.expose();
    // A string is not longer than its JSON, and a field not longer than the value.
    if json.len() <= LONG_FIELD_CHARACTERS_MAX {
        return Ok(());
    }
    let string = keywright_json::text(json).map(Zeroizing::new).ok();
    check_bytes(string.as_ref().map_or(json.len(), |string| string.len()))?;
    let too_long = |(name, field): (String, &RawValue)| {
        let what = LONG_FIELDS.into_iter().find(|long| *long == name)?;
        let text = Zeroizing::new(keywright_json::text(field.get()).ok()?);
        (text.chars().count() > LONG_FIELD_CHARACTERS_MAX).then_some(what)
    };
    // A value that is not an object has no fields.
    let fields = keywright_json::fields(json).unwrap_or_default();
    match fields.into_iter().find_map(too_long) {
        Some(what) => Err(UseCaseError::ValueTooLarge {
            what,
            max: LONG_FIELD_CHARACTERS_MAX,
            unit: "characters",
        }),
        None => Ok(()),
    }
}

/// Checks a lower bound of the size of a value.
pub(crate) fn check_bytes(bytes: usize) -> Result<(), UseCaseError> {
    if bytes > VALUE_BYTES_MAX {
        return Err(UseCaseError::ValueTooLarge {
            what: "the value of a credential",
            max: VALUE_BYTES_MAX,
            unit: "bytes",
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// Versions of earlier releases can contain keys that are rejected now.
    #[test]
    fn reserved_keys_are_allowed_in_values_but_not_in_parameters() {
        let smuggled = r#"{"$serde_json::private::RawValue":"1"}"#;
        let value = format!(r#"{{"value":{smuggled},"metadata":{smuggled}}}"#);
        let content = Content::from_plaintext(&Secret::new(value)).unwrap();
        assert_eq!(content.value.expose(), smuggled);
        assert_eq!(content.metadata.unwrap().json().expose(), smuggled);
        let parameters = format!(r#"{{"value":"v","parameters":{{"length":{smuggled}}}}}"#);
        let refused = Content::from_plaintext(&Secret::new(parameters)).err();
        assert!(matches!(refused, Some(UseCaseError::StoredValueMalformed)));
    }

    #[test]
    fn plaintext_is_written_into_one_buffer() {
        let content = Content {
            value: Secret::new(json!("v".repeat(1_000)).to_string()),
            parameters: Some(Parameters::new(serde_json::Map::new())),
            metadata: Some(Metadata::parse(Secret::new("{}".to_owned())).unwrap()),
            trusted_ca: Some("\u{1}".repeat(1_000)),
            inputs: Vec::new(),
            chosen_by: Some(Actor::of_lookup(&"\u{1}".repeat(255))),
        };
        let name = CredentialName::parse("/Team/a").unwrap();
        let credential_type = CredentialType::parse("password").unwrap();
        let plaintext = content.to_plaintext(&name, &credential_type).unwrap();
        let strings = name.as_str().len() + credential_type.as_str().len() + 1_000 + 255;
        let others = content.value.expose().len() + "{}{}".len();
        let bytes_max = KEYS_BYTES_MAX + ESCAPED_BYTES_MAX * strings + others;
        assert!(plaintext.expose().len() <= bytes_max);
        assert_eq!(plaintext.capacity(), bytes_max);
    }

    #[test]
    fn content_survives_a_round_trip() {
        let Value::Object(fields) = json!({"length": 30}) else {
            panic!("not an object")
        };
        let content = Content {
            value: Secret::new(r#"{"b":"ä\n","a":1}"#.to_owned()),
            parameters: Some(Parameters::new(fields)),
            metadata: Some(
                Metadata::parse(Secret::new(r#"{"owner":[1,null]}"#.to_owned())).unwrap(),
            ),
            trusted_ca: Some("-----BEGIN\nPEM".to_owned()),
            inputs: vec![InputVersion {
                pointer: "/a\"b".to_owned(),
                name: CredentialName::parse("/Team/b").unwrap(),
                version_id: Uuid::from_u128(7),
            }],
            chosen_by: Some(Actor::of_lookup("uaa-client:a\"b")),
        };
        let name = CredentialName::parse("/Team/a").unwrap();
        let credential_type = CredentialType::parse("password").unwrap();
        let plaintext = content.to_plaintext(&name, &credential_type).unwrap();
        let back = Content::from_plaintext(&plaintext).unwrap();
        let sealed_for = SealedFor::from_plaintext(&plaintext).unwrap();
        assert_eq!(sealed_for.name.as_deref(), Some("/Team/a"));
        assert_eq!(sealed_for.credential_type.as_deref(), Some("password"));
        let older = Secret::new(r#"{"value":1}"#.to_owned());
        assert!(SealedFor::from_plaintext(&older).unwrap().name.is_none());
        assert_eq!(Content::from_plaintext(&older).unwrap().chosen_by, None);
        assert!(back.value == content.value);
        assert!(back.parameters == content.parameters);
        assert_eq!(back.trusted_ca, content.trusted_ca);
        assert_eq!(back.inputs, content.inputs);
        assert_eq!(back.chosen_by, content.chosen_by);
        assert_eq!(
            back.metadata.unwrap().json().expose(),
            r#"{"owner":[1,null]}"#
        );
    }
}
