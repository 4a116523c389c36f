//! Checking a component before compilation.

use std::borrow::Cow;

use keywright_core::credential::CredentialType;

use crate::{
    component_file::checked_digest, generator::DESCRIPTOR, link::Fitting, outline::Outline,
    refused::Refusal, resolver::RESOLVER, role::Role,
};

/// A component that fits its role, not yet compiled.
pub(crate) struct Uncompiled<'a> {
    pub(crate) bytes: Cow<'a, [u8]>,
    pub(crate) digest: String,
    pub(crate) fitting: Fitting<'a>,
}

impl<'a> Uncompiled<'a> {
    /// Reads the component of a plugin and makes all checks that need no compilation.
    pub(crate) fn read(role: Role<'a>) -> Result<Self, Refusal> {
        let interface = if role.is_generator {
            credential_type(role)?;
            DESCRIPTOR
        } else {
            RESOLVER
        };
        let bytes = role.config.component.read()?;
        let digest = checked_digest(&bytes, role.config.sha256.as_deref())?;
        let fitting = Fitting::check(&Outline::read(&bytes)?, role, interface)?;
        Ok(Self {
            bytes,
            digest,
            fitting,
        })
    }
}

/// Parses the credential type of a generator from its configured name.
pub(crate) fn credential_type(role: Role<'_>) -> Result<CredentialType, Refusal> {
    CredentialType::parse(role.name)
        .ok()
        .filter(|parsed| parsed.as_str() == role.name)
        .ok_or(Refusal::CredentialTypeMalformed)
}
