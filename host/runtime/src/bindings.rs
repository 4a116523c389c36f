//! The host's side of every interface in `wit/`, generated.
//!
//! One world holds all interfaces that a plugin may import or export; which of them a component really has is found out
//! when it is loaded, one interface at a time.

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
            export keywright:generator/normalizer@0.2.0;
            export keywright:generator/acceptor@0.2.0;
            export keywright:generator/recoverer@0.2.0;
            export keywright:interpolation/resolver@0.2.0;
        }
    ",
    world: "keywright:host/plugin",
    imports: { default: trappable },
    with: { "keywright:signing/issuer.issuer": crate::host::signing::IssuerLease },
});
