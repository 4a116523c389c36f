//! Lists of what a caller may read, in the memory that is reserved for the response.

use std::ops::ControlFlow;

use crate::{
    Failure,
    authorization::{Caller, Rules},
    credential::{CredentialName, EffectiveExpiry, FoundCredential, ListedCertificate},
    permission::Operation,
};

/// What is listed.
pub(super) trait Listed {
    /// The name that the caller must be allowed to read.
    fn name(&self) -> &CredentialName;

    /// How large it is in a response, in bytes.
    fn rendered_bytes(&self) -> usize;
}

/// What a caller may read of what a query finds. Memory is reserved as the list grows.
pub(super) struct ReadableList<'a, T> {
    caller: &'a Caller,
    rules: &'a Rules,
    items: Vec<T>,
    unreserved_bytes: usize,
    refused: Option<Failure>,
}

impl<'a, T: Listed> ReadableList<'a, T> {
    pub(super) fn new(caller: &'a Caller, rules: &'a Rules) -> Self {
        Self {
            caller,
            rules,
            items: Vec::new(),
            unreserved_bytes: 0,
            refused: None,
        }
    }

    /// Adds what the caller may read; breaks off when there is no memory for it.
    pub(super) fn add(&mut self, item: T) -> ControlFlow<()> {
        if !self.rules.allow(Operation::Read, item.name().as_str()) {
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

    /// The list.
    ///
    /// # Errors
    /// As for [`Caller::reserve`].
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

    /// Its name may stand twice, for itself and among what its authority signs, and so may that of its authority.
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

/// How much is added to a list before memory is reserved for it, in bytes.
const RESERVED_AT_ONCE_BYTES: usize = 64 * 1024;

/// The bytes of a search result, not counting its name.
const FOUND_FRAME_BYTES: usize = 96;

/// The bytes of a certificate in a list, not counting names, and the bytes of each of its versions.
const LISTED_FRAME_BYTES: usize = 224;
