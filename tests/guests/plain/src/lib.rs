//! A generator without optional interfaces. Its values contain its input, and so show what the host does for such plugins.

#[cfg(target_arch = "wasm32")]
mod component;
