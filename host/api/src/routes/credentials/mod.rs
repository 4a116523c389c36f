//! `/api/v1/data`, `/api/v1/regenerate` and `/api/v1/bulk-regenerate`.

pub(crate) mod bulk_regenerate;
pub(crate) mod generate;
pub(crate) mod get;
pub(crate) mod set;
