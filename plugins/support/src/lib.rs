//! Shared code of the shipped plugins: a strict reader for JSON objects, the errors of a plugin, a random number generator on the
//! host's randomness, the rules for passwords and RSA key lengths, and the formats of key pairs.
//!
//! Functions and types are pure, so they are tested natively. [`Generator`] has the functions of a
//! plugin, and [`generator_component!`] exports them through WIT.

mod component;
mod failure;
mod fields;
mod generator;
mod key_length;
mod key_pair;
mod password;
mod random;
mod recovered;

pub use failure::{Failure, Violation};
pub use fields::{Fields, canonical, no_settings, to_json};
pub use generator::{Generator, filled_text};
pub use key_length::KeyLength;
pub use key_pair::{KeyFormat, KeyPair, ssh_fingerprint, take_ssh_comment};
pub use password::PasswordRules;
pub use random::HostRandom;
pub use recovered::Recovered;

/// The allocator of the standard library, in a version that uses a guest's initial memory first (see `INITIAL_HEAP` in
/// `host/xtask/src/guests.rs`). If a guest's memory does not grow, the host does not have to change memory mappings.
#[cfg(target_arch = "wasm32")]
#[global_allocator]
static ALLOCATOR: dlmalloc::GlobalDlmalloc = dlmalloc::GlobalDlmalloc;
