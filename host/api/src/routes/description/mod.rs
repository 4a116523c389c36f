//! The description of the API, for programs and for people.
//!
//! Both need no authentication, because they only reveal the release. They work in read-only mode, and are not audited.

pub(crate) mod openapi;
pub(crate) mod reference;
