use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use crate::Failure;

/// Writes parameters or a value as JSON text.
///
/// # Errors
///
/// [`Failure::Other`], when it can't be written as JSON; the text does not repeat it.
pub fn written(value: &impl Serialize) -> Result<String, Failure> {
    serde_json::to_string(value)
        .map_err(|_| Failure::Other("what was made can't be written as JSON".to_owned()))
}

/// Reads canonical parameters, which the plugin itself wrote and the host kept.
///
/// # Errors
///
/// [`Failure::Other`], when they are not of the form that the plugin writes.
pub fn canonical<T: DeserializeOwned + Serialize>(parameters: &str) -> Result<T, Failure> {
    let not_canonical = || Failure::Other("the parameters are not canonical".to_owned());
    let parsed: T = serde_json::from_str(parameters).map_err(|_| not_canonical())?;
    let given: Value = serde_json::from_str(parameters).map_err(|_| not_canonical())?;
    match serde_json::to_value(&parsed) {
        Ok(written) if written == given => Ok(parsed),
        _ => Err(not_canonical()),
    }
}
