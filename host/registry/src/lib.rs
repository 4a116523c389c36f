//! Components in registries of the OCI distribution specification 1.1. The only crate that speaks with them.
//!
//! A [`PinnedReference`] names a manifest by its digest, so what is pulled by it is always the same, wherever it comes from.
//! [`pull`] gives the bytes of the component, from the [`Cache`] or from a [`Registry`], and verifies them: the manifest by the
//! digest of the reference, the component by the one in the manifest, and its signature by a [`SignatureKey`], where there is
//! one. Whatever a registry sends has a size that it may have, and the whole has a deadline. [`push`] is the way back.
//!
//! A component is stored as the CNCF's layout for WebAssembly has it: a manifest whose configuration is of the type
//! `application/vnd.wasm.config.v0+json`, with one layer of the type `application/wasm`, the component itself
//! (`manifest.rs`). Where signatures are is said in `signature/`.

mod authentication;
mod cache;
mod credentials;
mod digest;
mod fault;
mod manifest;
mod pull;
mod push;
mod reference;
mod registry;
mod signature;
mod told;

pub use cache::{CACHE_EXTENSIONS, Cache};
pub use credentials::{Credentials, CredentialsRefused, DockerConfig};
pub use digest::{Digest, DigestMalformed};
pub use fault::Fault;
pub use pull::{PullLimits, Pulled, pull};
pub use push::{Pushed, Signed, push};
pub use reference::{PinnedReference, PushTarget, ReferenceMalformed, RegistryHost, is_reference};
pub use registry::{Access, AccessRefused, Registry};
pub use signature::{
    CosignKey, KeyMalformed, MinisignKey, SIGNATURE_EXTENSION, SignatureKey, SignatureRefused,
};
