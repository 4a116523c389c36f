use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use crate::Failure;

/// Serializes parameters or a value to JSON.
///
/// # Errors
///
/// [`Failure::Other`] if the serialization fails. The error does not contain the value.
pub fn written(value: &impl Serialize) -> Result<String, Failure> {
    serde_json::to_string(value)
        .map_err(|_| Failure::Other("could not serialize the result to JSON".to_owned()))
}

/// Parses canonical parameters, which the plugin wrote and the host stored.
///
/// # Errors
///
/// [`Failure::Other`] if they are not canonical.
pub fn canonical<T: DeserializeOwned + Serialize>(parameters: &str) -> Result<T, Failure> {
    let not_canonical = || Failure::Other("the parameters are not canonical".to_owned());
    let parsed: T = serde_json::from_str(parameters).map_err(|_| not_canonical())?;
    let given: Value = serde_json::from_str(parameters).map_err(|_| not_canonical())?;
    match serde_json::to_value(&parsed) {
        Ok(written) if written == given => Ok(parsed),
        _ => Err(not_canonical()),
    }
}
