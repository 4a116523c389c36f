//! Bearer tokens, and the built-in identity provider for development.

mod any_provider;
mod attacks;
mod claim_names;
mod claims;
mod development_identity;
mod forgery;
mod header;
mod provider;
mod recipes;
mod static_key;
mod stub_provider;

use keywright_harness::mint;
