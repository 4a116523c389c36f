use serde::Serialize;

use crate::{Failure, Members, no_settings, written};

/// Parameters from which a stored value can be made anew; the fields are those of
/// `keywright:generator/recoverer.recovered`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recovered {
    /// The canonical parameters, a JSON object.
    pub parameters: String,
    /// Whether the stored value determined them all.
    pub is_complete: bool,
}

impl Recovered {
    /// The parameters stored with a key pair, or else those that its public key tells, as `read` finds them.
    ///
    /// A pair without a public key, or with one that tells nothing, is made anew with default parameters, and the result is
    /// incomplete.
    ///
    /// # Errors
    ///
    /// [`Failure::Other`] when what is stored is no key pair; [`Failure::Misconfigured`] for any setting.
    pub fn of_key_pair<Parameters: Default + Serialize>(
        stored: Option<String>,
        value: &str,
        settings: &str,
        read: impl FnOnce(&str) -> Option<Parameters>,
    ) -> Result<Self, Failure> {
        no_settings(settings)?;
        if let Some(parameters) = stored {
            return Ok(Self {
                parameters,
                is_complete: true,
            });
        }
        let public_key = Members::parse(value)
            .and_then(|mut members| members.take_text("public_key"))
            .map_err(|_| Failure::Other("the stored value is no key pair".to_owned()))?;
        let found = public_key.as_deref().and_then(read);
        Ok(Self {
            is_complete: found.is_some(),
            parameters: written(&found.unwrap_or_default())?,
        })
    }
}
