//! Finds references to credentials in service bindings.
//!
//! - [`resolve`]: finds references. Pure, so it is tested natively.
//! - [`settings`]: the keys of references.
//! - `component`: the WIT bindings, only for `wasm32`.
//!
//! A binding is an object with a field `credentials`, in an array that is a field of the document:
//!
//! ```json
//! {"any service": [{"credentials": {"credhub-ref": "((/path/to/credential))"}}]}
//! ```
//!
//! The host replaces the whole `credentials` object with the credential's value. Everything else is left unchanged. The plugin
//! has no imports and never receives a value.

#[cfg(target_arch = "wasm32")]
mod component;
pub mod resolve;
pub mod settings;
