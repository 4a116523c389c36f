use std::net::{IpAddr, SocketAddr};

use keywright_api::ServerMode;
use keywright_core::permission::Actor;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{
    findings::Findings,
    source::Section,
    values::{ListenAddress, actor_forms},
};
use crate::started::StartupError;

/// Server management, and the management address for monitoring.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ManagementConfig {
    /// The actors that may switch read-only mode, as in permissions: `uaa-client:…`, `uaa-user:…`, `mtls-app:…`. None
    /// by default. From the server's own address, every authenticated caller may read the mode.
    actors: Vec<String>,
    /// The address and port that serve `/health` and `/metrics`, over plain HTTP and without authentication, so use a
    /// loopback address. Host names work as in `server.listen`. Without it, no metrics are collected; `/health` is
    /// always served on `server.listen`, too.
    #[schemars(with = "Option<String>")]
    pub(crate) listen: Option<ListenAddress>,
}

impl Section for ManagementConfig {}

impl ManagementConfig {
    /// Checks the management address, which must differ from the server's addresses.
    pub(crate) fn check_address(&self, server: &[SocketAddr], findings: &mut Findings) {
        let Some(listen) = &self.listen else {
            return;
        };
        for address in listen.resolve_or_report(LISTEN, findings) {
            check_address(address, server, findings);
        }
    }

    /// Checks the rest of the section.
    pub(crate) fn check(&self, findings: &mut Findings) {
        findings.ok_or_report("management.actors", self.server_mode());
        if self.listen.is_none() {
            findings.warning(
                LISTEN,
                "is not set, so /metrics is not served and no metrics are collected",
            );
        }
    }

    /// Returns the initial mode and the actors that may switch it.
    pub(crate) fn server_mode(&self) -> Result<ServerMode, StartupError> {
        for actor in &self.actors {
            if !Actor::parse(actor).is_ok_and(|actor| actor.can_log_in()) {
                return Err(StartupError::new(format!(
                    "management.actors: no caller can log in as {actor:?}; actors of callers are {}",
                    actor_forms()
                )));
            }
        }
        Ok(ServerMode::new(self.actors.iter().cloned()))
    }
}

fn check_address(listen: SocketAddr, server: &[SocketAddr], findings: &mut Findings) {
    let same_port = |other: &&SocketAddr| listen.port() == other.port() && listen.port() != 0;
    for other in server.iter().filter(same_port) {
        let (own, other) = (listen.ip(), other.ip());
        if own == other {
            findings.mistake(LISTEN, "must differ from server.listen");
        } else if covers(own, other) || covers(other, own) {
            findings.mistake(
                LISTEN,
                "must not use the port of server.listen, because one of the two listens on all addresses",
            );
        }
    }
    if !listen.ip().is_loopback() {
        findings.warning(
            LISTEN,
            "is not a loopback address: anyone who can reach it can read the metrics without authentication",
        );
    }
}

/// Returns whether a listener on `wide` also listens on `other`. A listener on `[::]` also accepts IPv4.
fn covers(wide: IpAddr, other: IpAddr) -> bool {
    wide.is_unspecified() && (wide.is_ipv6() || other.is_ipv4())
}

const LISTEN: &str = "management.listen";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wildcard_addresses_cover_their_family_and_ipv6_covers_all() {
        for (wide, other, does) in [
            ("0.0.0.0", "127.0.0.1", true),
            ("0.0.0.0", "::1", false),
            ("::", "::1", true),
            ("::", "127.0.0.1", true),
            ("127.0.0.1", "0.0.0.0", false),
            ("127.0.0.1", "127.0.0.2", false),
        ] {
            let covered = covers(wide.parse().unwrap(), other.parse().unwrap());
            assert_eq!(covered, does, "{wide} {other}");
        }
    }
}
