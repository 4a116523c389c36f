//! Client for registries of the OCI distribution specification 1.1, for plugin components only.
//!
//! A [`PinnedReference`] identifies a manifest by its digest, so every pull returns the same bytes from any registry.
//! [`pull`] reads the component from the [`Cache`] or from a [`Registry`] and verifies it: the manifest against the digest in
//! the reference, the component against the digest in the manifest, and the signature with the [`SignatureKey`], if one is
//! configured. Every response has a size limit, and the whole pull has a deadline. [`push`] uploads a component.
//!
//! Components use the CNCF layout for WebAssembly: a manifest whose configuration has the type
//! `application/vnd.wasm.config.v0+json`, with the component as its only layer, of type `application/wasm` (`manifest.rs`).
//! `signature.rs` describes where signatures are stored.

mod authentication;
mod cache;
mod error;
mod manifest;
mod reference;
mod registry;
mod signature;
mod transfer;

pub use authentication::{Credentials, DockerConfig};
pub use cache::{CACHE_EXTENSIONS, Cache};
pub use error::{RegistryError, SignatureError};
pub use reference::{
    Digest, PinnedReference, PushTarget, ReferenceError, RegistryHost, is_reference,
};
pub use registry::{Access, Registry, RegistryAccessError};
pub use signature::{CosignKey, MinisignKey, SIGNATURE_EXTENSION, SignatureKey};
pub use transfer::{PullLimits, Pulled, Pushed, pull, push};
