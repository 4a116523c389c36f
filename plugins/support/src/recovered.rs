use serde::Serialize;

use crate::{Failure, Fields, to_json};

/// Parameters to regenerate a stored value. The fields mirror the WIT record `keywright:generator/recoverer.recovered`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recovered {
    /// The canonical parameters, a JSON object.
    pub parameters: String,
    /// Whether the stored value determined all parameters.
    pub is_complete: bool,
}

impl Recovered {
    /// Returns the parameters stored with a key pair. Without them, `read` determines the parameters from the public key, and whether
    /// they describe it completely.
    ///
    /// If there is no public key, or `read` returns `None`, the result has default parameters and is incomplete.
    ///
    /// # Errors
    ///
    /// [`Failure::Other`] if the stored value is not a key pair.
    pub fn of_key_pair<Parameters: Default + Serialize>(
        stored: Option<String>,
        value: &str,
        read: impl FnOnce(&str) -> Option<(Parameters, bool)>,
    ) -> Result<Self, Failure> {
        if let Some(parameters) = stored {
            return Ok(Self {
                parameters,
                is_complete: true,
            });
        }
        let public_key = Fields::parse(value)
            .and_then(|mut fields| fields.take_text("public_key"))
            .map_err(|_| Failure::Other("the stored value is not a key pair".to_owned()))?;
        let found = public_key.as_deref().and_then(read);
        let (parameters, is_complete) = found.unwrap_or_default();
        Ok(Self {
            parameters: to_json(&parameters)?,
            is_complete,
        })
    }
}
