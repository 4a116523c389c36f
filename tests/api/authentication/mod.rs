//! Who may call: bearer tokens, and the identity provider that development servers bring with them.

mod claims;
mod development_identity;
mod forgery;
mod header;
mod provider;
mod static_key;

use keywright_harness::mint;
