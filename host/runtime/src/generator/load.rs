//! Creating a generator's guest from a linked component.

use keywright_core::credential::CredentialType;

use super::{
    Description, GeneratorGuest,
    exports::{GeneratorExports, describe},
};
use crate::{call::Plugin, refused::Refusal};

impl GeneratorGuest {
    /// Calls a linked component's `describe`. Its type must match the configured one, if any.
    ///
    /// # Errors
    /// If it is not a generator, or its description violates a rule.
    pub(crate) fn of(
        mut plugin: Plugin,
        configured: Option<&CredentialType>,
    ) -> Result<Self, Refusal> {
        if configured.is_some_and(CredentialType::is_set_only) {
            return Err(Refusal::CredentialTypeSetOnly);
        }
        let exports = GeneratorExports::find(&plugin)?;
        let described = describe(&plugin, &exports)?;
        let credential_type = match configured {
            Some(configured) => configured.clone(),
            None => CredentialType::parse(&described.credential_type)
                .ok()
                .filter(|parsed| parsed.as_str() == described.credential_type)
                .ok_or(Refusal::CredentialTypeMalformed)?,
        };
        let description = Description::parse(described, &credential_type)?;
        if credential_type.is_set_only() {
            return Err(Refusal::CredentialTypeSetOnly);
        }
        if description.issuer_parameter.is_some() && !exports.takes_issuer() {
            return Err(Refusal::IssuerNotTaken);
        }
        let identity = &mut plugin.identity;
        identity.version.clone_from(&description.plugin_version);
        credential_type.as_str().clone_into(&mut identity.name);
        Ok(Self {
            plugin,
            exports,
            description,
        })
    }
}
