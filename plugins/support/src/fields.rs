use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Map, Value};

use crate::{Failure, Violation};

/// The fields of a caller's JSON object. The plugin takes known fields one by one; [`Fields::finish`] rejects the rest.
///
/// The host has already converted scalars to the types in the parameters schema, so this type converts nothing.
#[derive(Debug)]
pub struct Fields(Map<String, Value>);

impl Fields {
    /// Parses a JSON object.
    pub fn parse(text: &str) -> Result<Self, Violation> {
        match serde_json::from_str(text) {
            Ok(Value::Object(fields)) => Ok(Self(fields)),
            _ => Err(Violation::of_whole("must be a JSON object")),
        }
    }

    /// Returns whether a field is present, even if it is null.
    pub fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// Takes a string. Returns `None` if it is absent or null.
    pub fn take_text(&mut self, name: &str) -> Result<Option<String>, Violation> {
        match self.0.remove(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(Violation::of(name, "must be a string")),
        }
    }

    /// Takes a string. Returns `None` if it is absent, null or empty.
    pub fn take_filled_text(&mut self, name: &str) -> Result<Option<String>, Violation> {
        Ok(self.take_text(name)?.filter(|text| !text.is_empty()))
    }

    /// Takes the text of a key. Returns `None` if it is absent, null, or only white space.
    pub fn take_key(&mut self, name: &str) -> Result<Option<String>, Violation> {
        let key = self.take_text(name)?;
        Ok(key.filter(|text| !text.trim().is_empty()))
    }

    /// Takes an array of strings. Returns an empty list if it is absent or null.
    pub fn take_texts(&mut self, name: &str) -> Result<Vec<String>, Violation> {
        let not_texts = || Violation::of(name, "must be an array of strings");
        match self.0.remove(name) {
            None | Some(Value::Null) => Ok(Vec::new()),
            Some(Value::Array(items)) => items
                .into_iter()
                .map(|item| match item {
                    Value::String(text) => Ok(text),
                    _ => Err(not_texts()),
                })
                .collect(),
            Some(_) => Err(not_texts()),
        }
    }

    /// Takes an integer. Returns `None` if it is absent, and the nearest 64-bit integer if it does not fit, so that it is refused
    /// as out of range.
    ///
    /// # Errors
    ///
    /// If the field has another type or is null.
    pub fn take_integer(&mut self, name: &str) -> Result<Option<i64>, Violation> {
        let integer = match self.0.remove(name) {
            None => return Ok(None),
            Some(field) => field.as_i64().or_else(|| saturated(field.as_f64()?)),
        };
        integer
            .map(Some)
            .ok_or_else(|| Violation::of(name, "must be a whole number"))
    }

    /// Takes a boolean. Returns false if it is absent.
    pub fn take_flag(&mut self, name: &str) -> Result<bool, Violation> {
        match self.0.remove(name) {
            None => Ok(false),
            Some(Value::Bool(flag)) => Ok(flag),
            Some(_) => Err(Violation::of(name, "must be true or false")),
        }
    }

    /// Takes a field of any type. Returns `None` if it is absent or null.
    pub fn take_deserialized<T: DeserializeOwned>(
        &mut self,
        name: &str,
    ) -> Result<Option<T>, Violation> {
        let field = self.0.remove(name).unwrap_or_default();
        serde_json::from_value(field).map_err(|_| Violation::of(name, "is malformed"))
    }

    /// Discards a field that is accepted and ignored.
    pub fn ignore(&mut self, name: &str) {
        self.0.remove(name);
    }

    /// Checks that all fields were taken.
    ///
    /// # Errors
    ///
    /// If a field was not taken. Names the first one.
    pub fn finish(self) -> Result<(), Violation> {
        match self.0.into_iter().next() {
            None => Ok(()),
            Some((name, _)) => Err(Violation::of(name, "is unknown")),
        }
    }
}

/// Returns the nearest 64-bit integer for a number out of their range.
fn saturated(number: f64) -> Option<i64> {
    match number {
        ..=-9.2e18 => Some(i64::MIN),
        9.2e18.. => Some(i64::MAX),
        _ => None,
    }
}

/// Checks that the settings are empty, for plugins without settings.
///
/// # Errors
///
/// [`Failure::Misconfigured`], which names the setting.
pub fn no_settings(settings: &str) -> Result<(), Failure> {
    let fields = Fields::parse(settings)
        .map_err(|_| Failure::Misconfigured("the settings must be a JSON object".to_owned()))?;
    match fields.0.keys().next() {
        None => Ok(()),
        Some(name) => Err(Failure::Misconfigured(format!("unknown setting `{name}`"))),
    }
}

/// Serializes parameters or a value to JSON.
///
/// # Errors
///
/// [`Failure::Other`] if the serialization fails. The error does not contain the value.
pub fn to_json(value: &impl Serialize) -> Result<String, Failure> {
    serde_json::to_string(value)
        .map_err(|_| Failure::Other("could not serialize the result to JSON".to_owned()))
}

/// Parses canonical parameters, which the plugin wrote and the host stored.
pub fn canonical<T: DeserializeOwned + Serialize>(parameters: &str) -> Result<T, Failure> {
    let not_canonical = || Failure::Other("the parameters are not canonical".to_owned());
    let parsed: T = serde_json::from_str(parameters).map_err(|_| not_canonical())?;
    let given: Value = serde_json::from_str(parameters).map_err(|_| not_canonical())?;
    match serde_json::to_value(&parsed) {
        Ok(written) if written == given => Ok(parsed),
        _ => Err(not_canonical()),
    }
}
