//! The type certificate.

mod alternative_names;
mod contents;
mod issuer;
mod key_type;
mod parameters;
mod signing_version;
mod subject;
