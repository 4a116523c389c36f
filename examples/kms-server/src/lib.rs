//! A key management plugin for Keywright, in parts that can be used for others.
//!
//! [`KeyManagementService`] speaks the protocol; [`KeyFile`] is what does the work here. To put another service behind it,
//! write a [`KeyKeeper`] that asks it.

mod key_file;
pub mod messages;
mod service;

pub use key_file::KeyFile;
pub use service::{KeyKeeper, KeyManagementService};
