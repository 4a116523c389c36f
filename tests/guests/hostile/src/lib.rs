//! A plugin that misbehaves as configured: the settings select the behavior of each function, as in `{"generate": "loop"}`.
//! Functions without a setting behave correctly.
//!
//! It is a generator of the type `hostile` with every optional interface, and also a resolver.

#[cfg(target_arch = "wasm32")]
mod behaviour;
#[cfg(target_arch = "wasm32")]
mod component;
