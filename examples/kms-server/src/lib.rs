//! A key management plugin for Keywright, with reusable parts.
//!
//! [`KeyManagementService`] implements the protocol, and [`KeyFile`] the encryption. To use another key management service,
//! implement [`KeyKeeper`] for it.

mod key_file;
pub mod messages;
mod service;

pub use key_file::KeyFile;
pub use service::{KeyKeeper, KeyManagementService};
