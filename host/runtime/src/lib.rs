//! Loads plugins and calls them in a sandbox. The only crate with wasmtime.
//!
//! [`Runtime::load`] reads the components that the configuration names, refuses those that import what they were not
//! granted, compiles what the cache does not have, asks each generator to describe itself, looks whether its values are as
//! random as it says ([`EntropyFault`]), and hands out the domain's ports: [`Generators`](keywright_core::ports::Generators)
//! and [`Resolver`](keywright_core::ports::Resolver). [`Plugins`] are those that are in use, and takes others in their place
//! while requests go on.
//!
//! Each call is made in a fresh instance, on one of two lanes of threads, under a ceiling of memory, a deadline, and
//! limits of what goes in and out; what it gives is held against the schema that the plugin declared. Nothing of one call
//! is left for the next, and whatever a guest does ends its own call alone, with a
//! [`PluginFault`](keywright_core::ports::PluginFault) that says what happened. A component whose calls are cut short again and
//! again is not called for a while (`breaker.rs`).
//!
//! [`Candidate`] does with one component, for its author, what [`Runtime`] does with those of a server.
//!
//! To offer guests something new: describe it in `wit/`, name it in `bindings.rs`, implement it in `host/`, and add it with
//! its versions and a [`Grant`] to the table in `imports.rs`. To call a new optional interface of guests: name it in
//! `bindings.rs`, look for it in `generator/exports.rs`, and call it from `generator/guest.rs`. To bring out a new version of
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
