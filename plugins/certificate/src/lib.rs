//! Generates X.509 certificates with RSA, ECDSA and Ed25519 keys: root CAs, intermediate CAs and leaves.
//!
//! - [`parameters`]: the parameters and their canonical form; [`subject`], [`alternative_name`], [`usage`] and [`key_type`]
//!   are its parts.
//! - [`generate`]: the key, the certificate, the value. It is pure, so native tests call it.
//! - [`tbs`]: the body of the certificate (`TBSCertificate`).
//! - [`private_key`]: generates and encodes keys of every type, and signs with them.
//! - [`recover`]: the parameters to regenerate a stored certificate. [`kept`] contains the parts that parameters can't express, and
//!   [`public_key`] reads the key.
//! - [`issuer`]: the interface to a signing CA; in a component, the host's `issuer` resource.
//! - [`pem`]: the PEM format of stored certificates.
//! - `component`: the WIT bindings, only for `wasm32`.
//!
//! # Encoding and signing
//!
//! rcgen encodes the body, but can't encode the issuer correctly: it encodes the issuer's name again from fields, and supports
//! only the signature algorithms of its own keys. So [`tbs`] replaces the issuer's name and algorithm in the body with the issuer's
//! own bytes. If a subject must be kept byte for byte, [`tbs`] replaces it in the same way.
//!
//! The plugin signs self-signed certificates with their own keys. The host, which has the keys of CAs, signs all others. The host
//! also checks certificates that callers *set*: it parses X.509 itself, and no guest needs their private keys. So the plugin has
//! no `acceptor`.
//!
//! Build it with `-C target-feature=+wide-arithmetic,+simd128`: without these features, big-number arithmetic is about nine
//! times slower.

pub mod alternative_name;
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

/// The parameter with the name of the CA's credential.
pub const ISSUER_PARAMETER: &str = "ca";

/// The minimum number of random bits in a private key of the default length: all bits of both primes except the first two and the
/// last bit of each. The bits of the serial number are not secret.
pub const ENTROPY_BITS_MIN: u32 = 2042;
