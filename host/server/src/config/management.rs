//! The management of the server.

use keywright_api::ServerMode;
use keywright_core::permission::{ACTOR_KINDS, Actor};
use schemars::JsonSchema;
use serde::Deserialize;

use super::ListenAddress;
use crate::started::StartRefused;

/// The management of the server, and the management address, for those who watch it.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ManagementConfig {
    /// The actors that may switch read-only mode, as permissions name them: `uaa-client:…`, `uaa-user:…`, `mtls-app:…`.
    /// Without any, no caller may. From the server's own address every authenticated caller may read the mode.
    actors: Vec<String>,
    /// The address and port on which `/health` and `/metrics` are served, in plain HTTP and to anybody, so it should be a
    /// loopback one. Host names are as in `server.listen`. Without it they are not served, and nothing is measured.
    pub(crate) listen: Option<ListenAddress>,
}

impl ManagementConfig {
    /// The mode that a server starts in, and who may switch it: actors of a form that a caller can have.
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
