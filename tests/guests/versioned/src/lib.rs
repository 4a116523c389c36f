//! A generator in several releases, to test upgrades. All releases are in one component, which contains the text of its release
//! exactly once. Tests replace that text:
//!
//! - `1.0.0`, as built;
//! - `1.0.1` changes nothing but its version;
//! - `1.1.0` has another default length, and a new parameter with a default;
//! - `1.2.0` returns a new field, which its schema does not require;
//! - `1.3.0` has the setting `label` instead of `note`;
//! - `1.4.0` requires the setting `label`;
//! - `2.0.0` removes a parameter, allows shorter values only, and requires a new field in values, also to recover parameters.

#[cfg(target_arch = "wasm32")]
mod component;
