//! The type certificate.

mod contents;
mod issuer;
mod parameters;
mod signing_version;
mod subject;
