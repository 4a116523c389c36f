//! A generator whose values are not as random as it says, in the way that its setting `breaks` tells it. Each way is caught
//! by one rule of entropy conformance alone. Without that setting, it makes what it should.

#[cfg(target_arch = "wasm32")]
mod component;
