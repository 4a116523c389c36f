//! JSON that may contain secrets.

use keywright_core::Secret;
use keywright_json::JsonError;
use serde_json::Value;
use zeroize::Zeroize;

/// A JSON value whose strings are zeroed on drop.
pub(crate) struct SensitiveJson(Value);

impl SensitiveJson {
    /// Parses JSON text.
    ///
    /// # Errors
    /// If it breaks the rules of [`keywright_json::check`].
    pub(crate) fn parse(text: &Secret) -> Result<Self, JsonError> {
        keywright_json::read(text.expose()).map(Self)
    }

    pub(crate) fn value(&self) -> &Value {
        &self.0
    }

    pub(crate) fn value_mut(&mut self) -> &mut Value {
        &mut self.0
    }

    /// Returns the value as compact JSON text.
    pub(crate) fn to_secret(&self) -> Secret {
        Secret::new(self.0.to_string())
    }
}

impl Drop for SensitiveJson {
    fn drop(&mut self) {
        zero(&mut self.0);
    }
}

/// Zeroes all strings in a JSON value.
pub(crate) fn zero(value: &mut Value) {
    match value {
        Value::String(text) => text.zeroize(),
        Value::Array(items) => items.iter_mut().for_each(zero),
        Value::Object(members) => members.values_mut().for_each(zero),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
