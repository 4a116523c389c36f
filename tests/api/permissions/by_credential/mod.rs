//! `/api/v1/permissions`: the older interface, by the name of a credential.

mod add;
mod delete;
mod list;
