//! `/api/v1/permissions`: the older interface, which speaks of the permissions on one credential.

pub(super) mod add;
pub(super) mod delete;
pub(super) mod list;
