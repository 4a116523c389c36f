//! Server management.

use keywright_api::ServerMode;
use keywright_core::permission::{ACTOR_KINDS, Actor};
use schemars::JsonSchema;
use serde::Deserialize;

use super::ListenAddress;
use crate::started::StartRefused;

/// Server management, and the management address for monitoring.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ManagementConfig {
    /// The actors that may switch read-only mode, as in permissions: `uaa-client:…`, `uaa-user:…`, `mtls-app:…`. None
    /// by default. On the server's own address every authenticated caller may read the mode.
    actors: Vec<String>,
    /// The address and port that serve `/health` and `/metrics`, over plain HTTP and without authentication, so use a
    /// loopback address. Host names work as in `server.listen`. Without it, neither is served and no metrics are
    /// collected.
    pub(crate) listen: Option<ListenAddress>,
}

impl ManagementConfig {
    /// Returns the initial mode and the actors that may switch it.
    pub(crate) fn server_mode(&self) -> Result<ServerMode, StartRefused> {
        for actor in &self.actors {
            if !Actor::parse(actor).is_ok_and(|actor| actor.can_log_in()) {
                return Err(StartRefused::new(format!(
                    "management.actors names {actor:?}, which no caller can be: it must begin with one of {}",
                    ACTOR_KINDS.join(", ")
                )));
            }
        }
        Ok(ServerMode::new(self.actors.iter().cloned()))
    }
}
