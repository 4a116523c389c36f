//! A plugin that misbehaves as its settings tell it: they name, for each function, what it does in the place of its work,
//! as in `{"generate": "loop"}`. A function that they don't name works as it should.
//!
//! It is a generator of type `hostile` with every optional interface, and a resolver too.

#[cfg(target_arch = "wasm32")]
mod behaviour;
#[cfg(target_arch = "wasm32")]
mod component;
