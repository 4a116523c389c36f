//! A generator whose values are less random than declared. The setting `breaks` selects how; exactly one rule of the entropy test
//! detects each way. Without that setting, its values are correct.

#[cfg(target_arch = "wasm32")]
mod component;
