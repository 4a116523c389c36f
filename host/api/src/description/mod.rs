//! The API's description (`OpenAPI` 3.1), generated from the code, and the HTML reference rendered from it.
//!
//! Each route declares its description next to its handler, so no route lacks one. The schemas of bodies come from the types
//! that the handlers read and render. The schemas of specified types come from the shipped plugins. Other types are only in
//! `GET /api/v1/types`, because the description is public and must not reveal the server's configuration. So all servers of a
//! release return the same description, and a golden file contains it.
//!
//! The reference is HTML without scripts, because browsers may send credentials to the server.

mod bodies;
mod document;
mod operation;
mod page;
mod schemas;
#[cfg(test)]
mod tests;

use std::sync::LazyLock;

pub(crate) use bodies::{Version, example, form, parameters_of_another_type};
pub(crate) use operation::{Description, Parameter, Tag};
pub(crate) use page::content_security_policy;
pub(crate) use schemas::{
    GrantedPath, LenientBoolean, LenientInteger, LookedUpName, Name, OperationName, SetCertificate,
    Timestamp, VersionToFlag, specified_types,
};

pub(crate) fn document() -> &'static str {
    static TEXT: LazyLock<String> = LazyLock::new(|| document::document().to_string());
    &TEXT
}

pub(crate) fn page() -> &'static str {
    static TEXT: LazyLock<String> = LazyLock::new(|| page::page(&document::document()));
    &TEXT
}
