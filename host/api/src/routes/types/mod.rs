//! `/api/v1/types`.

pub(crate) mod list;
