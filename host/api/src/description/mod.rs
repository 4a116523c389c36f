//! The API's description (`OpenAPI` 3.1), made of the code, and the reference that is rendered from it.
//!
//! Each route brings what is said of it, beside its handler, so that none can lack it: the schemas of bodies are made of the
//! types that the handlers read and render. Of the types of the specification, the schemas of parameters and values are those of
//! the shipped plugins; other types are for `GET /api/v1/types` to tell, since who has no identity must not learn from this
//! description how a server is configured. So it is the same for all servers of one release, and a golden file.
//!
//! The reference is plain HTML without a script: the server's address is one to which browsers may bring credentials.

mod bodies;
mod document;
pub(crate) mod example;
mod failures;
mod operation;
mod page;
mod scalars;
#[cfg(test)]
mod tests;
mod types;

use std::sync::LazyLock;

pub(crate) use bodies::{GenerateBody, SetBody, SetCertificate, Version};
pub(crate) use operation::{Described, Parameter, Tag};
pub(crate) use page::content_security_policy;
pub(crate) use scalars::{GrantedPath, LenientBoolean, LookedUpName, Metadata, Timestamp};

/// The description, as JSON text.
pub(crate) fn document() -> &'static str {
    static TEXT: LazyLock<String> = LazyLock::new(|| document::document().to_string());
    &TEXT
}

/// The reference, as HTML.
pub(crate) fn page() -> &'static str {
    static TEXT: LazyLock<String> = LazyLock::new(|| page::page(&document::document()));
    &TEXT
}
