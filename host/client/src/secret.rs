//! Secret texts and values.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, ser::Error as _};
use serde_json::value::RawValue;
use zeroize::Zeroizing;

/// Secret text: zeroed when dropped, redacted in `Debug`, with neither `Display` nor `Serialize`.
///
/// `keywright_core` has a similar type. The types are separate because this type implements `Deserialize`, for responses, and
/// because the client must not depend on crates of the host.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Zeroizing<String>);

impl Secret {
    /// Takes ownership of secret text.
    #[must_use]
    pub fn new(text: String) -> Self {
        Self(Zeroizing::new(text))
    }

    /// Exposes the secret. Every call is a potential leak.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Secret(redacted)")
    }
}

impl<'de> Deserialize<'de> for Secret {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Self::new)
    }
}

/// The value of a credential: verbatim JSON text, so that numbers keep all digits. Zeroed when dropped, redacted in `Debug`.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct SecretJson(Zeroizing<String>);

impl SecretJson {
    /// Serializes a value.
    pub fn of(value: &(impl Serialize + ?Sized)) -> Result<Self, serde_json::Error> {
        serde_json::to_string(value).map(Self::of_json)
    }

    /// Takes ownership of valid JSON.
    pub(crate) fn of_json(json: String) -> Self {
        Self(Zeroizing::new(json))
    }

    /// Exposes the JSON text. Every call is a potential leak.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Returns the text if the value is a string.
    #[must_use]
    pub fn text(&self) -> Option<Secret> {
        keywright_json::text(&self.0).ok().map(Secret::new)
    }

    /// Returns a string as is, and any other value as JSON.
    pub(crate) fn plain(&self) -> Zeroizing<String> {
        let text = self.text();
        let plain = text.as_ref().map_or(self.expose(), Secret::expose);
        Zeroizing::new(plain.to_owned())
    }

    /// Returns a field of the value, if it is an object with that field.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<Self> {
        let mut fields = self.fields()?.into_iter();
        fields
            .find(|(have, _)| have == name)
            .map(|(_, value)| value)
    }

    /// Returns the fields of the value in order, if it is an object.
    #[must_use]
    pub fn fields(&self) -> Option<Vec<(String, Self)>> {
        let fields = keywright_json::fields(&self.0).ok()?.into_iter();
        let own = |value: &RawValue| Self::of_json(value.get().to_owned());
        Some(fields.map(|(key, value)| (key, own(value))).collect())
    }

    /// Allows serialization of the value, for a request or for output.
    pub(crate) fn exposed(&self) -> Exposed<'_> {
        Exposed(self)
    }
}

impl fmt::Debug for SecretJson {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("SecretJson(redacted)")
    }
}

impl<'de> Deserialize<'de> for SecretJson {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        Ok(Self::of_json(String::from(Box::<str>::from(raw))))
    }
}

/// A value that can be serialized.
#[derive(Clone, Copy)]
pub(crate) struct Exposed<'a>(&'a SecretJson);

impl Serialize for Exposed<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let raw = keywright_json::raw(&self.0.0).map_err(S::Error::custom)?;
        raw.serialize(serializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_redacts_texts_and_values() {
        let text = Secret::new("hunter2".to_owned());
        let value = SecretJson::of("hunter2").unwrap();
        assert!(!format!("{text:?} {value:?}").contains("hunter2"));
    }

    #[test]
    fn numbers_keep_all_digits_and_fields_their_order() {
        let text = r#"{"z":123456789012345678901234567890,"a":1.10}"#;
        let value: SecretJson = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&value.exposed()).unwrap(), text);
        let fields = value.fields().unwrap();
        let fields: Vec<_> = fields
            .iter()
            .map(|(name, value)| (name.as_str(), value.expose()))
            .collect();
        assert_eq!(
            fields,
            [("z", "123456789012345678901234567890"), ("a", "1.10")]
        );
    }

    #[test]
    fn a_string_value_has_no_fields() {
        let value = SecretJson::of("secret").unwrap();
        assert_eq!(value.text().unwrap().expose(), "secret");
        assert_eq!(value.plain().as_str(), "secret");
        assert_eq!(SecretJson::of(&1).unwrap().plain().as_str(), "1");
        assert!(value.fields().is_none());
        assert!(SecretJson::of(&1).unwrap().text().is_none());
    }
}
