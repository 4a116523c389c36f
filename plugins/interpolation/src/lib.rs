//! Finds references to credentials in service bindings.
//!
//! - [`resolve`]: what a reference is. Pure, and tested natively.
//! - [`settings`]: the members in which references stand.
//! - `component`: the WIT side, for `wasm32` alone.
//!
//! A binding is an object with a member `credentials`; it stands in an array that is a member of the document:
//!
//! ```json
//! {"any service": [{"credentials": {"credhub-ref": "((/path/to/credential))"}}]}
//! ```
//!
//! The value of the credential takes the place of the whole `credentials` object. Whatever has another shape is no
//! reference, and is left as it is. The plugin imports nothing and never sees a value.

#[cfg(target_arch = "wasm32")]
mod component;
pub mod resolve;
pub mod settings;
