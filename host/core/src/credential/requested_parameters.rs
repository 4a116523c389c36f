//! Unparsed parameters of a request.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// The parameters of a request: each is JSON text, as the caller wrote it.
///
/// Only the generator knows whether `1.50` is a number or the text of a string, so it parses them.
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
