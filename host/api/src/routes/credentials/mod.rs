//! `/api/v1/data`, `/api/v1/regenerate` and `/api/v1/bulk-regenerate`.

pub(crate) mod bulk_regenerate;
pub(crate) mod delete;
mod find;
pub(crate) mod generate;
pub(crate) mod get;
pub(crate) mod set;

use keywright_core::{
    Failure,
    credential::{CredentialName, CredentialType, Credentials},
};

/// Returns the required name in a body.
fn required_name(name: Option<String>) -> Result<CredentialName, Failure> {
    Ok(CredentialName::parse(&name.unwrap_or_default())?)
}

/// Returns the required type in a body, which this server must support.
fn known_type(
    credential_type: Option<String>,
    credentials: &Credentials,
) -> Result<CredentialType, Failure> {
    CredentialType::parse(&credential_type.unwrap_or_default())
        .ok()
        .filter(|parsed| parsed.is_set_only() || credentials.generators.generator(parsed).is_some())
        .ok_or_else(|| Failure::TypeUnknown {
            known: credentials.known_types(),
        })
}
