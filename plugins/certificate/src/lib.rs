//! Makes X.509 certificates with RSA, ECDSA and Ed25519 keys: roots, intermediate authorities and leaves.
//!
//! - [`parameters`]: what a caller may ask for, and its canonical form; [`subject`], [`alternative_name`], [`usage`]
//!   and [`key_type`] are its parts.
//! - [`generate`]: the key, the certificate, the value. Pure, and tested natively.
//! - [`tbs`]: the body of the certificate (`TBSCertificate`).
//! - [`private_key`]: making keys of every type, writing them down, and signing with them.
//! - [`recover`]: the parameters with which a stored certificate is made anew; [`kept`] is what else it is made from, and
//!   [`public_key`] what is known of its key. [`canonical_der`] tells whether it can be kept.
//! - [`issuer`]: what the plugin needs of a certificate authority; the host's `issuer` resource in a component.
//! - [`pem`]: the one form in which certificates are stored.
//! - `component`: the WIT side, for `wasm32` alone.
//!
//! # Who writes and who signs
//!
//! rcgen writes the body. It is exact in everything but the issuer: it would write the issuer's name anew, from fields,
//! and knows the signature algorithms of its own keys alone. So [`tbs`] puts the bytes of the issuer's subject and of its
//! algorithm in the places of those that rcgen wrote; a subject whose bytes are to be kept goes the same way.
//!
//! A certificate that signs itself is signed with its own key, here. Every other is signed by the host, which holds the
//! key of the authority. What a caller *sets* is checked by the host too: it parses X.509 itself, and keys that were set
//! have no business in a guest. So the plugin has no `acceptor`.
//!
//! Build it with `-C target-feature=+wide-arithmetic,+simd128`: without them the arithmetic of large numbers takes some
//! nine times as long.

pub mod alternative_name;
pub mod canonical_der;
#[cfg(target_arch = "wasm32")]
mod component;
pub mod generate;
pub mod issuer;
pub mod kept;
pub mod key_type;
pub mod parameters;
pub mod pem;
pub mod private_key;
pub mod public_key;
pub mod recover;
pub mod subject;
pub mod tbs;
pub mod usage;

/// The JSON Schema of the parameters.
pub const PARAMETERS_SCHEMA: &str = include_str!("parameters.schema.json");

/// The JSON Schema of the value.
pub const VALUE_SCHEMA: &str = include_str!("value.schema.json");

/// The parameter that names the credential of the certificate authority.
pub const ISSUER_PARAMETER: &str = "ca";

/// How many random bits, at least, go into the private key of a certificate, of the default length: all those of both primes
/// but the first two and the last of each. Those of the serial number are not secret.
pub const ENTROPY_BITS_MIN: u32 = 2042;
