//! The type certificate.

mod authority;
mod facts;
mod members;
mod private_key;

/// An X.509 certificate of version 1.
const VERSION_1: &str = include_str!("made_by_openssl/version-1.pem");
