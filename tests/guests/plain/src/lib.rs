//! A generator without optional interfaces. Its values contain its input, which shows how the host prepares the input of
//! such plugins.

#[cfg(target_arch = "wasm32")]
mod component;
