//! What a server says of itself.

mod health;
mod info;
mod key_usage;
mod version;
