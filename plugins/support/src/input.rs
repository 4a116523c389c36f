use serde_json::Value;

/// A credential from which a plugin derives a value.
pub struct Input {
    /// The JSON Pointer of its name in the parameters.
    pub pointer: String,
    /// Its value, as JSON text.
    pub value: String,
}

impl Input {
    /// Parses the value. Returns null if it is not JSON, which the host excludes.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.value).unwrap_or_default()
    }
}
