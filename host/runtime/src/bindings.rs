//! Generated bindings of the interfaces in `wit/`.
//!
//! The host uses only their types, and the functions of `wasi:random`. The names of all other functions depend on the version
//! that a component is built for (`exported.rs`, `imports.rs`).

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
