//! Programs that users have, run against a real server.

mod oidc_provider;
