//! The client of key management plugins.
//!
//! A plugin is a program beside the server that keeps a key, or knows a service that does, and encrypts and decrypts with it by
//! gRPC over a Unix socket (`key_management.proto`). [`KeyManagementPlugin`] implements the domain's `KeyManagement` with it:
//! it has keys wrapped that are made here, and unwrapped when a server starts. So no request waits for a plugin, and what is
//! stored is still bound to its place.

mod messages;
mod plugin;

pub use plugin::{KeyManagementPlugin, MESSAGE_BYTES_MAX, PluginSettings};
