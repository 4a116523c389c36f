//! Certificates, as the `openssl` program creates and verifies them.
#![expect(
    clippy::unwrap_used,
    reason = "these are tests; helper functions outside of #[test] count as production code for the lints"
)]

mod attacks;
mod issuer;
mod members;
mod private_keys;
mod support;
