//! Who may call: bearer tokens, and the identity provider that development servers bring with them.

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
