//! What a server says of itself.

mod health;
mod info;
mod version;
