//! Loads plugins and calls them in a sandbox. The only crate with wasmtime.
//!
//! [`Runtime::load`] reads the configured components and refuses components with imports that are not granted. It compiles
//! components that are not in the cache, calls the `describe` function of each generator, and tests its randomness
//! ([`EntropyFault`]). It provides the domain's ports: [`Generators`](keywright_core::ports::Generators) and
//! [`Resolver`](keywright_core::ports::Resolver). [`Plugins`] holds the active plugins and replaces them without
//! interrupting requests.
//!
//! Each call runs in a fresh instance on one of two thread pools ("lanes"), with a memory limit, a deadline, and limits on
//! its input and output. Its output is validated against the schema that the plugin declared. No state carries over between
//! calls, and a failing guest ends only its own call, with a [`PluginFault`](keywright_core::ports::PluginFault). A component
//! that keeps failing is temporarily disabled (`breaker.rs`).
//!
//! [`Candidate`] runs a single component for its author, as [`Runtime`] runs the plugins of a server.
//!
//! To add an interface for guests: describe it in `wit/`, name it in `bindings.rs`, implement it in `host/`, and add it with
//! its versions and a [`Grant`] to the table in `imports.rs`. To call a new optional interface of guests: name it in
//! `bindings.rs`, look it up in `generator/exports.rs`, and call it from `generator/guest.rs`. To release a new version of
//! `wit/`: see `wit/README.md`, and add it to `versions.rs`.

mod bindings;
mod breaker;
mod cache;
mod call;
mod candidate;
mod component_file;
mod config;
mod conformance;
mod engine;
mod exported;
mod generator;
mod host;
mod image;
mod imports;
mod json;
mod lane;
mod link;
mod load;
mod measure;
mod outline;
mod plugins;
mod refused;
mod resolver;
mod role;
mod schema;
mod tested;
mod text;
mod uncompiled;
mod usage;
mod versions;

pub use cache::{CACHE_EXTENSIONS, CacheAccess, CacheKeys};
pub use candidate::{
    Candidate, CandidateFailure, Check, InspectedGenerator, Inspection, LimitUsed, Quantiles, Run,
    Speed, Trial, Vector, VectorsMalformed,
};
pub use component_file::{COMPONENT_BYTES_MAX, ComponentSource};
pub use config::{Grant, Limits, PluginConfig, RuntimeConfig, SandboxConfig};
pub use conformance::{EntropyFault, EntropyReport};
pub use host::notes::NoteReader;
pub use host::random::{RandomSource, RandomUnavailable, SystemRandom};
pub use load::Runtime;
pub use measure::{CALL_DURATION, LaneOccupancy, QUEUE_WAIT, describe_metrics};
pub use plugins::Plugins;
pub use refused::{LoadRefused, PluginRefused, Refusal};
pub use schema::SchemaMalformed;
pub use tested::TestedComponents;
