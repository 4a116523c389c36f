//! Generated bindings of the interfaces in `wit/`, and the host's type behind their resource `issuer`.
//!
//! The host uses only their types, and the functions of `wasi:random`. The names of all other functions depend on the version
//! that a component is built for (`exported.rs`, `interfaces.rs`).

use std::sync::Arc;

use keywright_core::ports::CertificateIssuer;
use wasmtime::component::Resource;

wasmtime::component::bindgen!({
    path: [
        "../../wit/deps/wasi-random",
        "../../wit/signing",
        "../../wit/generator",
        "../../wit/interpolation",
    ],
    inline: "
        package keywright:host;

        world plugin {
            import wasi:random/random@0.2.0;
            import keywright:signing/issuer@0.2.0;
            export keywright:generator/descriptor@0.2.0;
            export keywright:generator/generator@0.2.0;
            export keywright:generator/issued-generator@0.2.0;
            export keywright:generator/derived-generator@0.2.0;
            export keywright:generator/normalizer@0.2.0;
            export keywright:generator/acceptor@0.2.0;
            export keywright:generator/recoverer@0.2.0;
            export keywright:generator/expiry@0.2.0;
            export keywright:interpolation/resolver@0.2.0;
            export keywright:interpolation/any-type-resolver@0.2.0;
        }
    ",
    world: "keywright:host/plugin",
    imports: { default: trappable },
    with: { "keywright:signing/issuer.issuer": crate::bindings::PassedIssuer },
});

/// The handle of the call's issuer.
pub(crate) const ISSUER_HANDLE: u32 = 1;

/// An issuer that a guest borrows for one call, and whether it has signed already.
#[expect(
    unreachable_pub,
    reason = "the generated bindings export it again, within the crate"
)]
pub struct PassedIssuer {
    pub(crate) issuer: Arc<dyn CertificateIssuer>,
    pub(crate) is_used: bool,
}

impl PassedIssuer {
    pub(crate) fn new(issuer: Arc<dyn CertificateIssuer>) -> Self {
        Self {
            issuer,
            is_used: false,
        }
    }

    /// Returns the handle that the guest borrows.
    pub(crate) fn handle() -> Resource<Self> {
        Resource::new_borrow(ISSUER_HANDLE)
    }
}
