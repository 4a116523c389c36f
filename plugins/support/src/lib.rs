//! What the shipped plugins share, without a word of WIT: reading a JSON object strictly, the errors of a plugin, the
//! host's randomness as a random number generator, the rules of passwords and RSA key lengths, and the forms of key pairs.
//!
//! Everything here is pure, so it is tested natively. A plugin's `component.rs` ties it to the bindings of its world;
//! [`wit_failure!`] writes the conversion of the errors there.

mod component;
mod failure;
mod json;
mod key_length;
mod key_pair;
mod members;
mod password;
mod random;
mod recovered;

pub use failure::{Failure, Violation};
pub use json::{canonical, written};
pub use key_length::KeyLength;
pub use key_pair::{KeyFormat, KeyPair, ssh_fingerprint, take_ssh_comment};
pub use members::{Members, no_settings};
pub use password::PasswordRules;
pub use random::HostRandom;
pub use recovered::Recovered;

/// The allocator of the standard library, in a release that begins with the memory that a guest has from the start (see
/// `INITIAL_HEAP` in `host/xtask/src/guests.rs`). A guest whose memory does not grow costs its host no change of mappings.
#[cfg(target_arch = "wasm32")]
#[global_allocator]
static ALLOCATOR: dlmalloc::GlobalDlmalloc = dlmalloc::GlobalDlmalloc;
