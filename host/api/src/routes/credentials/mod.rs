//! `/api/v1/data`, `/api/v1/regenerate` and `/api/v1/bulk-regenerate`.

pub(crate) mod bulk_regenerate;
pub(crate) mod generate;
pub(crate) mod get;
pub(crate) mod set;

use std::collections::BTreeMap;

use keywright_core::{
    UseCaseError,
    credential::{CredentialName, RequestedParameters},
};
use serde_json::value::RawValue;

use crate::request::{BodyError, RequestObject};

fn required_name(name: Option<String>) -> Result<CredentialName, UseCaseError> {
    Ok(CredentialName::parse(&name.unwrap_or_default())?)
}

/// Takes the parameters, each as its original text.
fn take_parameters(
    fields: &mut RequestObject<'_>,
) -> Result<Option<RequestedParameters>, BodyError> {
    let parameters: Option<BTreeMap<String, &RawValue>> = fields.take("parameters")?;
    Ok(parameters.map(|parameters| {
        let parameters = parameters.into_iter();
        parameters
            .map(|(name, json)| (name, json.get().to_owned()))
            .collect()
    }))
}
