//! Lists of items that a caller may read, within the memory reserved for the response.

use std::ops::ControlFlow;

use crate::{
    UseCaseError,
    authorization::{Authorization, Caller, EffectivePermissions},
    credential::{
        CredentialName, EffectiveExpiry, FoundCredential, IssuedCredential, ListedCertificate,
    },
    permission::Operation,
};

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
    permissions: EffectivePermissions,
    items: Vec<T>,
    unreserved_bytes: usize,
    refused: Option<UseCaseError>,
}

impl<'a, T: Listed> ReadableList<'a, T> {
    /// Creates an empty list; `None` if the caller may read no credential, so that no query is needed.
    pub(super) async fn of(
        authorization: &Authorization,
        caller: &'a Caller,
    ) -> Result<Option<Self>, UseCaseError> {
        let permissions = authorization.permissions_of(caller).await?;
        Ok(permissions.allow_somewhere(Operation::Read).then(|| Self {
            caller,
            permissions,
            items: Vec::new(),
            unreserved_bytes: 0,
            refused: None,
        }))
    }

    /// Returns whether the caller may read a credential.
    pub(super) fn may_contain(&self, name: &str) -> bool {
        self.permissions.allow(Operation::Read, name)
    }

    /// Adds an item if the caller may read it. Stops the query if the memory for the item can't be reserved.
    pub(super) fn add(&mut self, item: T) -> ControlFlow<()> {
        if !self.may_contain(item.name().as_str()) {
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

    /// Returns the number of items.
    pub(super) fn len(&self) -> usize {
        self.items.len()
    }

    /// Returns the list.
    pub(super) fn finish(mut self) -> Result<Vec<T>, UseCaseError> {
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
        FOUND_FRAME_BYTES + self.name.as_str().len()
    }
}

impl Listed for CredentialName {
    fn name(&self) -> &CredentialName {
        self
    }

    fn rendered_bytes(&self) -> usize {
        NAME_FRAME_BYTES + self.as_str().len()
    }
}

impl Listed for IssuedCredential {
    fn name(&self) -> &CredentialName {
        &self.name
    }

    fn rendered_bytes(&self) -> usize {
        LISTED_FRAME_BYTES + self.name.as_str().len()
    }
}

impl Listed for EffectiveExpiry {
    fn name(&self) -> &CredentialName {
        &self.name
    }

    fn rendered_bytes(&self) -> usize {
        let names = [Some(&self.name), self.link.name.as_ref()]
            .into_iter()
            .flatten();
        LISTED_FRAME_BYTES + names.map(|name| name.as_str().len()).sum::<usize>()
    }
}

impl Listed for ListedCertificate {
    fn name(&self) -> &CredentialName {
        &self.name
    }

    /// Counts its name twice, because it may also be listed among the certificates that its CA signed.
    fn rendered_bytes(&self) -> usize {
        let signers = self
            .versions
            .iter()
            .map(|version| version.signed_by.as_ref());
        let versions = signers.map(|name| name.map_or(0, |name| name.as_str().len()));
        let versions = versions
            .map(|name| LISTED_FRAME_BYTES + name)
            .sum::<usize>();
        LISTED_FRAME_BYTES + 2 * self.name.as_str().len() + versions
    }
}

/// The size of the steps in which memory is reserved, in bytes.
const RESERVED_AT_ONCE_BYTES: usize = 64 * 1024;

/// The size of a search result without its name, in bytes.
const FOUND_FRAME_BYTES: usize = 96;

/// The size of a name in a list without its text, in bytes.
const NAME_FRAME_BYTES: usize = 3;

/// The size of a listed certificate without names, and of each of its versions, in bytes.
const LISTED_FRAME_BYTES: usize = 224;
