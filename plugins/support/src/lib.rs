//! Shared code of the shipped plugins: a strict reader for JSON objects, the errors of a plugin, a random number generator on the
//! host's randomness, the rules for passwords and RSA key lengths, the hash of passwords, the formats of key pairs, and a decoder of PEM.
//!
//! Functions and types are pure, so they are tested natively. [`generator_component!`] exports a [`Generator`] through WIT,
//! [`derived_generator_component!`] a function that derives values from other credentials.

mod component;
mod failure;
mod fields;
mod generator;
mod input;
mod key_length;
mod key_pair;
mod password;
mod password_hash;
mod pem;
mod random;
mod recovered;

pub use failure::{Failure, Violation};
pub use fields::{Fields, canonical, no_settings, to_json};
pub use generator::{Generator, filled_text};
pub use input::Input;
pub use key_length::KeyLength;
pub use key_pair::{KeyFormat, KeyPair, ssh_comment, ssh_fingerprint, take_ssh_comment};
pub use password::PasswordRules;
pub use password_hash::{PASSWORD_BYTES_MAX, password_hash};
pub use pem::{PUBLIC_KEY, first_block};
pub use random::HostRandom;
pub use recovered::Recovered;

/// The allocator of the standard library, in a version that uses a guest's initial memory first (see `INITIAL_HEAP` in
/// `host/xtask/src/guests.rs`). If a guest's memory does not grow, the host does not have to change memory mappings.
#[cfg(target_arch = "wasm32")]
#[global_allocator]
static ALLOCATOR: dlmalloc::GlobalDlmalloc = dlmalloc::GlobalDlmalloc;
