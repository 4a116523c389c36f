//! `/api/v1/data`, `/api/v1/regenerate` and `/api/v1/bulk-regenerate`.

pub(crate) mod bulk_regenerate;
pub(crate) mod delete;
mod find;
pub(crate) mod generate;
pub(crate) mod get;
pub(crate) mod set;

use keywright_core::{Failure, credential::CredentialName};

/// Returns the required name in a body.
fn required_name(name: Option<String>) -> Result<CredentialName, Failure> {
    Ok(CredentialName::parse(&name.unwrap_or_default())?)
}
