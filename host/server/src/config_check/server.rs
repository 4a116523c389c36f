//! The listener, its limits and its TLS.

use std::net::SocketAddr;

use super::{Findings, access::warn_of_others};
use crate::{
    config::{DevelopmentConfig, Sections, ServerSection},
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
    warn_of_others("server.tls.private_key", &server.tls.private_key, findings);
    let management = sections.management.as_ref();
    if let Some(listen) = management.and_then(|management| management.listen) {
        check_management_address(listen, server, findings);
    }
    if let Some(development) = &sections.development_identity_provider {
        check_development(development, sections, server, findings);
    }
}

fn check_management_address(listen: SocketAddr, server: &ServerSection, findings: &mut Findings) {
    if listen == server.listen && listen.port() != 0 {
        findings.mistake("management.listen", "is the address of server.listen");
    }
    if !listen.ip().is_loopback() {
        findings.warning(
            "management.listen",
            "is no loopback address: whoever reaches it reads the metrics, without any authentication",
        );
    }
}

fn check_development(
    development: &DevelopmentConfig,
    sections: &Sections,
    server: &ServerSection,
    findings: &mut Findings,
) {
    let section = "development_identity_provider";
    findings.warning(
        section,
        "its secrets are public: never use this configuration in production",
    );
    findings.taken(section, wiring::refuse_other_than_loopback(server));
    if let Some(authentication) = &sections.authentication {
        let clock = wiring::clock();
        let provider = wiring::development_identity(development, authentication, &clock);
        let setting = if authentication.url.is_some() {
            "development_identity_provider.signing_key"
        } else {
            "authentication.url"
        };
        findings.taken(setting, provider);
    }
}
