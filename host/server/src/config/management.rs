//! The management address.

use std::net::SocketAddr;

use serde::Deserialize;

/// The management address, for those who watch the server.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ManagementConfig {
    /// The address and port on which `/health` and `/metrics` are served, in plain HTTP and to anybody, so it should be a
    /// loopback one. Without it they are not served, and nothing is measured.
    pub(crate) listen: Option<SocketAddr>,
}
