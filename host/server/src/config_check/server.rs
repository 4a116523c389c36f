//! The listener, its limits and its TLS.

use std::{net::IpAddr, net::SocketAddr};

use super::{Findings, access::warn_if_world_accessible};
use crate::{
    config::{DevelopmentConfig, ListenAddress, Sections},
    process,
    started::StartRefused,
    tls, wiring,
};

pub(super) fn check(sections: &Sections, findings: &mut Findings) {
    let Some(server) = &sections.server else {
        return;
    };
    for (setting, what) in server.mistakes() {
        findings.mistake(setting, what);
    }
    tls::check(&server.tls, findings);
    warn_if_world_accessible("server.tls.private_key", &server.tls.private_key, findings);
    let addresses = resolved("server.listen", &server.listen, findings);
    let management = sections.management.as_ref();
    if let Some(listen) = management.and_then(|management| management.listen.as_ref()) {
        for own in resolved("management.listen", listen, findings) {
            check_management_address(own, &addresses, findings);
        }
    }
    if let Some(development) = &sections.development_identity_provider {
        check_development(development, sections, &addresses, findings);
    }
}

/// Returns the addresses of a setting, or none if the host name can't be resolved.
fn resolved(setting: &str, listen: &ListenAddress, findings: &mut Findings) -> Vec<SocketAddr> {
    let resolved = listen.resolve();
    let resolved = resolved
        .map_err(|cause| StartRefused::while_doing(format!("resolving {}", listen.host()), cause));
    findings.taken(setting, resolved).unwrap_or_default()
}

fn check_management_address(listen: SocketAddr, server: &[SocketAddr], findings: &mut Findings) {
    let same_port = |other: &&SocketAddr| listen.port() == other.port() && listen.port() != 0;
    for other in server.iter().filter(same_port) {
        let (own, other) = (listen.ip(), other.ip());
        if own == other {
            findings.mistake("management.listen", "must differ from server.listen");
        } else if covers(own, other) || covers(other, own) {
            findings.mistake(
                "management.listen",
                "must not use the port of server.listen, because one of the two listens on all addresses",
            );
        }
    }
    if !listen.ip().is_loopback() {
        findings.warning(
            "management.listen",
            "is not a loopback address: anyone who can reach it can read the metrics without authentication",
        );
    }
}

/// Returns whether a listener on `wide` also listens on `other`. A listener on `[::]` also accepts IPv4.
fn covers(wide: IpAddr, other: IpAddr) -> bool {
    wide.is_unspecified() && (wide.is_ipv6() || other.is_ipv4())
}

fn check_development(
    development: &DevelopmentConfig,
    sections: &Sections,
    addresses: &[SocketAddr],
    findings: &mut Findings,
) {
    let section = "development_identity_provider";
    findings.warning(
        section,
        "its secrets are public: never use this configuration in production",
    );
    findings.taken(section, wiring::refuse_other_than_loopback(addresses));
    if let Some(authentication) = &sections.authentication {
        let clock = process::clock();
        let provider = wiring::development_identity(development, authentication, &clock);
        let setting = if authentication.url.is_some() {
            "development_identity_provider.signing_key"
        } else {
            "authentication.url"
        };
        findings.taken(setting, provider);
    }
}

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
