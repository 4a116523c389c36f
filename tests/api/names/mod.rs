//! Names of credentials.

mod casing;
mod form;
mod slashes;
mod types;
