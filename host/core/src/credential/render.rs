//! Preparing versions and lists for responses, within the memory reserved for the response.

use std::{collections::BTreeMap, ops::ControlFlow};

use serde_json::value::RawValue;

use crate::{
    Failure, Secret,
    authorization::{Caller, EffectivePermissions, Permit},
    credential::{
        CredentialName, CredentialVersion, Credentials, EffectiveExpiry, FoundCredential,
        ListedCertificate,
        content::{ESCAPED_BYTES_MAX, to_secret},
        version_store::OpenVersion,
    },
    permission::Operation,
};

impl Credentials {
    /// Returns a version for a response. If the settings require it, `ca` also contains the other trusted CA certificate.
    pub(super) fn render(
        &self,
        permit: &Permit<'_>,
        mut open: OpenVersion,
    ) -> Result<CredentialVersion, Failure> {
        // Only values of type certificate are guaranteed to have the CA certificate in `ca`.
        if self.certificate_settings.concatenates_authorities
            && open.stored.credential_type.is_certificate()
            && let Some(trusted) = &open.content.trusted_ca
        {
            open.content.value = with_trusted(&open.content.value, trusted)?;
        }
        Ok(open.into_version(permit))
    }
}

/// Returns the value with a second certificate in `ca`, after the issuing certificate. Each ends with a line break. A value
/// without `ca` stays unchanged.
fn with_trusted(value: &Secret, trusted: &str) -> Result<Secret, Failure> {
    let malformed = |_| Failure::StoredValueMalformed;
    let unwritable = |_| Failure::StoredValueMalformed;
    let fields = keywright_json::fields(value.expose()).map_err(malformed)?;
    let mut fields: BTreeMap<String, &RawValue> = fields.into_iter().collect();
    let signing = fields.get("ca").filter(|ca| ca.get() != "null");
    let Some(signing) = signing else {
        return Ok(value.clone());
    };
    let signing = keywright_json::text(signing.get()).map_err(malformed)?;
    let both = format!("{}\n{}\n", signing.trim(), trusted.trim());
    let bytes_max = value.expose().len() + ESCAPED_BYTES_MAX * both.len();
    let both = serde_json::value::to_raw_value(&both).map_err(unwritable)?;
    fields.insert("ca".to_owned(), &both);
    to_secret(&fields, bytes_max)
}

/// An item of a list.
pub(super) trait Listed {
    /// Returns the name that the caller must be allowed to read.
    fn name(&self) -> &CredentialName;

    /// Returns its size in a response, in bytes.
    fn rendered_bytes(&self) -> usize;
}

/// The items of a query result that a caller may read. Reserves memory as it grows.
pub(super) struct ReadableList<'a, T> {
    caller: &'a Caller,
    permissions: &'a EffectivePermissions,
    items: Vec<T>,
    unreserved_bytes: usize,
    refused: Option<Failure>,
}

impl<'a, T: Listed> ReadableList<'a, T> {
    pub(super) fn new(caller: &'a Caller, permissions: &'a EffectivePermissions) -> Self {
        Self {
            caller,
            permissions,
            items: Vec::new(),
            unreserved_bytes: 0,
            refused: None,
        }
    }

    /// Adds an item if the caller may read it. Breaks if its memory can't be reserved.
    pub(super) fn add(&mut self, item: T) -> ControlFlow<()> {
        if !self
            .permissions
            .allow(Operation::Read, item.name().as_str())
        {
            return ControlFlow::Continue(());
        }
        self.unreserved_bytes = self.unreserved_bytes.saturating_add(item.rendered_bytes());
        if self.unreserved_bytes >= RESERVED_AT_ONCE_BYTES {
            self.reserve();
        }
        if self.refused.is_some() {
            return ControlFlow::Break(());
        }
        self.items.push(item);
        ControlFlow::Continue(())
    }

    /// Returns the list.
    pub(super) fn finish(mut self) -> Result<Vec<T>, Failure> {
        self.reserve();
        self.refused.map_or(Ok(self.items), Err)
    }

    fn reserve(&mut self) {
        if self.refused.is_none() {
            let bytes = std::mem::take(&mut self.unreserved_bytes);
            self.refused = self.caller.reserve(bytes).err();
        }
    }
}

impl Listed for FoundCredential {
    fn name(&self) -> &CredentialName {
        &self.name
    }

    fn rendered_bytes(&self) -> usize {
        FOUND_FRAME_BYTES.saturating_add(self.name.as_str().len())
    }
}

impl Listed for EffectiveExpiry {
    fn name(&self) -> &CredentialName {
        &self.name
    }

    fn rendered_bytes(&self) -> usize {
        let link = self
            .link
            .name
            .as_ref()
            .map_or(0, |name| name.as_str().len());
        LISTED_FRAME_BYTES
            .saturating_add(self.name.as_str().len())
            .saturating_add(link)
    }
}

impl Listed for ListedCertificate {
    fn name(&self) -> &CredentialName {
        &self.name
    }

    /// Counts its name twice, because it may also be listed among the certificates that its CA signed.
    fn rendered_bytes(&self) -> usize {
        let signers = self.versions.iter().map(|version| {
            let signer = version.signed_by.as_ref();
            LISTED_FRAME_BYTES.saturating_add(signer.map_or(0, |name| name.as_str().len()))
        });
        let name = self.name.as_str().len().saturating_mul(2);
        signers.fold(
            LISTED_FRAME_BYTES.saturating_add(name),
            usize::saturating_add,
        )
    }
}

/// The size of the steps in which memory is reserved, in bytes.
const RESERVED_AT_ONCE_BYTES: usize = 64 * 1024;

/// The size of a search result without its name, in bytes.
const FOUND_FRAME_BYTES: usize = 96;

/// The size of a listed certificate without names, and of each of its versions, in bytes.
const LISTED_FRAME_BYTES: usize = 224;

#[cfg(test)]
mod tests {
    use super::*;

    fn concatenated(value: &str) -> String {
        let value = Secret::new(value.to_owned());
        with_trusted(&value, "\n two\n\n")
            .unwrap()
            .expose()
            .to_owned()
    }

    #[test]
    fn both_certificates_are_trimmed_and_end_with_a_line_break() {
        assert_eq!(
            concatenated(r#"{"ca":"one \n","certificate":"c\n","private_key":null}"#),
            r#"{"ca":"one\ntwo\n","certificate":"c\n","private_key":null}"#
        );
    }

    #[test]
    fn a_value_without_ca_stays_unchanged() {
        for value in [r#"{"ca":null,"certificate":"c"}"#, r#"{"certificate":"c"}"#] {
            assert_eq!(concatenated(value), value);
        }
    }
}
