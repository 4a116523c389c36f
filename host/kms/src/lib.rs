//! Client for key management plugins.
//!
//! A plugin is a program on the server's machine that encrypts and decrypts with its own key or with a key management service. It
//! serves gRPC on a Unix socket (`key_management.proto`). [`KeyManagementPlugin`] implements the domain's `KeyManagement` port:
//! the plugin wraps keys that the server creates, and unwraps them when a server starts. So no request waits for a plugin, and
//! stored records are still bound to their location.

mod messages;
mod plugin;

pub use plugin::{KeyManagementPlugin, MESSAGE_BYTES_MAX, PluginSettings};
