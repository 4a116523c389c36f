//! `/api/v1/interpolate`.

pub(crate) mod interpolate;
