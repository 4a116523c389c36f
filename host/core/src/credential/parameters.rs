//! Generation parameters: as requested, and in canonical form.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::{UseCaseError, credential::LookupName};

/// The canonical parameters of a generated version, as normalized by its generator.
#[derive(Clone, Default, PartialEq)]
pub struct Parameters(Map<String, Value>);

impl Parameters {
    /// Wraps a JSON object of parameters.
    pub fn new(fields: Map<String, Value>) -> Self {
        Self(fields)
    }

    /// Parses what [`Parameters::to_json`] returned.
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

    /// Returns the parameters except parameters with these names.
    pub(crate) fn without(self, names: &[String]) -> Self {
        self.retain(|name| !names.iter().any(|without| without == name))
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

impl std::fmt::Debug for Parameters {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Parameters(redacted)")
    }
}

/// The parameters of a request: each is JSON text, as the caller wrote it.
///
/// The generator parses them: whether `1.50` is a number or the text of a string depends on its schema.
#[derive(Clone, Default)]
pub struct RequestedParameters(BTreeMap<String, String>);

impl RequestedParameters {
    /// Adds a parameter, or replaces the parameter of this name.
    pub fn insert(&mut self, name: &str, json: String) {
        self.0.insert(name.to_owned(), json);
    }

    /// Returns the name and the JSON text of each parameter.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        let parameters = self.0.iter();
        parameters.map(|(name, json)| (name.as_str(), json.as_str()))
    }
}

impl FromIterator<(String, String)> for RequestedParameters {
    fn from_iter<I: IntoIterator<Item = (String, String)>>(parameters: I) -> Self {
        Self(parameters.into_iter().collect())
    }
}

impl From<Map<String, Value>> for RequestedParameters {
    fn from(parameters: Map<String, Value>) -> Self {
        let parameters = parameters.into_iter();
        parameters
            .map(|(name, value)| (name, value.to_string()))
            .collect()
    }
}

impl std::fmt::Debug for RequestedParameters {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("RequestedParameters(redacted)")
    }
}
