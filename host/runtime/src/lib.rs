//! Loads plugins and calls them in a sandbox. The only crate with wasmtime.
//!
//! [`Runtime::load`] reads the configured components and refuses components with imports that are not granted. It compiles
//! components that are not in the cache, each in a process of its own (`compiler.rs`), calls the `describe` function of each
//! generator, and tests its randomness ([`EntropyError`]). It provides the domain's ports:
//! [`Generators`](keywright_core::ports::Generators) and [`Resolver`](keywright_core::ports::Resolver). [`Plugins`] holds the
//! active plugins and replaces them without interrupting requests.
//!
//! Each call runs in a fresh instance on one of two thread pools ("lanes"), with a memory limit, a deadline, and limits on
//! its input and output. Its output is validated against the schema that the plugin declared. No state carries over between
//! calls, and a failing guest ends only its own call, with a [`PluginFaultError`](keywright_core::ports::PluginFaultError). A component
//! that keeps failing is temporarily disabled (`breaker.rs`).
//!
//! [`PluginUnderTest`] runs a single component for its author, as [`Runtime`] runs the plugins of a server.
//!
//! To add an interface for guests: describe it in `wit/`, name and implement it in `host.rs`, and add it with its versions and a
//! [`Grant`] to the table in `interfaces.rs`. To call a new optional interface of guests: name it in `host.rs`, look it up in
//! `generator/exports.rs`, and call it in `generator/guest.rs`. To release a new version of `wit/`: see `tests/plugins/released.rs`, and
//! add it to `interfaces.rs`.

mod breaker;
mod cache;
mod call;
mod compiler;
mod component;
mod config;
mod conformance;
mod engine;
mod generator;
mod host;
mod interfaces;
mod lane;
mod load;
mod load_error;
mod outline;
mod plugin_under_test;
mod resolver;
mod schema;

pub use cache::{CACHE_EXTENSIONS, CacheAccess, CacheKey, broken_rule_of_private_folder};
pub use call::CALL_DURATION;
pub use compiler::{COMPILE_COMMAND, compile_component};
pub use component::COMPONENT_BYTES_MAX;
pub use config::{
    Compiler, ComponentSource, Grant, Limits, Number, PluginConfig, RuntimeConfig, SandboxConfig,
};
pub use conformance::{EntropyError, EntropyReport};
pub use generator::TestInputs;
pub use host::{NoteReader, RandomError, RandomSource, SystemRandom, TestIssuers};
pub use lane::{LaneOccupancy, QUEUE_WAIT};
pub use load::{Plugins, Runtime, describe_metrics};
pub use load_error::{LoadError, PluginLoadError, PluginRefusedError};
pub use plugin_under_test::{
    Check, ComparedRequest, ConformanceReport, Difference, Effect, InspectedGenerator, Inspection,
    LimitUsed, Mismatch, Operation, Outcome, PluginCall, PluginTestError, PluginUnderTest,
    Prediction, ProgressReader, Quantiles, Run, Speed, TestHost, TestRandom, UpgradeReport, Vector,
    VectorsError,
};
pub use schema::SchemaError;
