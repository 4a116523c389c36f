//! Information about the server.

mod health;
mod info;
mod key_usage;
mod version;
