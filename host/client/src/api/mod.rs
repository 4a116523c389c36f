//! What the API can be asked for: one file a noun, with its requests, its answers and the methods of
//! [`Client`](crate::Client) that send them.

pub(crate) mod credentials;
pub(crate) mod generation;
pub(crate) mod types;
mod version;
