//! Finds references to credentials in service bindings and, if a setting allows it, in all strings of a document.
//!
//! - [`resolve`]: finds references. It is pure, so native tests call it.
//! - [`settings`]: the keys of references, and whether strings contain references.
//! - `component`: the WIT bindings, only for `wasm32`.
//!
//! A binding is an object with a field `credentials`, in an array that is a field of the document:
//!
//! ```json
//! {"any service": [{"credentials": {"credhub-ref": "((/path/to/credential))"}}]}
//! ```
//!
//! The host replaces the whole `credentials` object with the credential's value, which must be of type json. Everything else is
//! left unchanged. The plugin has no imports and never receives a value.
//!
//! With the setting `references_in_strings`, `((/path/to/credential))` is also a reference in every other string, to a credential
//! of any type. `((/path/to/credential.username))` is a reference to a field of its value. References have the syntax of the
//! BOSH command line.

#[cfg(target_arch = "wasm32")]
mod component;
pub mod resolve;
pub mod settings;
