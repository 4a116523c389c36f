//! A generator without any optional interface, which only says what it was given: what a host does by itself for such
//! plugins can be seen in its values.

#[cfg(target_arch = "wasm32")]
mod component;
