//! The domain of Keywright: credentials, their use cases, and ports.
//!
//! This crate is independent of HTTP, SQL and WebAssembly, and does no I/O. It defines its external dependencies as traits in
//! [`ports`]. The other crates of the host implement these traits, and the server wires them together.
//!
//! Read [`credential`] first (names, types, versions and use cases), then [`authorization`], which every use case calls, and
//! [`interpolation`]. [`permission`] has the types of permissions, and [`permission_management`] their use cases.
//! [`retention`] runs in the background.
//!
//! To add a use case, write it as a method of the type with the ports that it needs. Add a method to a port only if the use
//! case needs it. Then add a route in `keywright-api`.

pub mod authorization;
pub mod certificate;
pub mod check;
pub mod credential;
pub mod encryption_key;
pub mod error;
pub mod interpolation;
pub mod log;
pub mod permission;
pub mod permission_management;
pub mod ports;
pub mod response_memory;
pub mod retention;
pub mod secret;
pub mod text;

pub use error::UseCaseError;
pub use secret::Secret;
