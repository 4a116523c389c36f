//! `/api/v1/permissions`: the older interface, for the permissions on one credential.

pub(crate) mod add;
pub(crate) mod delete;
pub(crate) mod list;
