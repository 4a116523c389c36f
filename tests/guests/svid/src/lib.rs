//! A generator of X.509-SVIDs: certificates for workloads, in values of another type than `certificate`.

#[cfg(target_arch = "wasm32")]
mod component;
#[cfg(target_arch = "wasm32")]
mod tbs;
