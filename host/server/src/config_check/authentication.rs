//! Authentication and configured permissions.

use super::Findings;
use crate::{
    config::{AuthenticationConfig, AuthorizationConfig, Sections},
    process,
    started::StartRefused,
    tokens,
};

pub(super) fn check(sections: &Sections, findings: &mut Findings) {
    if let Some(authentication) = &sections.authentication {
        check_tokens(authentication, sections, findings);
    }
    if let Some(authorization) = &sections.authorization {
        check_permissions(authorization, findings);
    }
}

fn check_tokens(config: &AuthenticationConfig, sections: &Sections, findings: &mut Findings) {
    let rules = config
        .rules()
        .map_err(|cause| StartRefused::while_doing("reading the rules for access tokens", cause));
    let rules = findings.taken("authentication", rules);
    let is_development = sections.development_identity_provider.is_some();
    let takes_certificates = sections
        .server
        .as_ref()
        .is_none_or(|server| server.tls.client_authorities.is_some());
    if is_development {
        return;
    }
    if let (Some(key), Some(rules)) = (&config.static_key, rules) {
        let verifier = tokens::by_static_key(key, rules, process::clock());
        findings.taken("authentication.static_key.public_key", verifier);
    }
    if config.static_key.is_some() {
        return;
    }
    if let Some(authorities) = &config.trusted_authorities {
        let read = tokens::read_authorities(authorities);
        findings.taken("authentication.trusted_authorities", read);
    }
    match config.provider_address() {
        Some((setting, url)) => {
            if !findings.has_mistake("authentication.trusted_authorities") {
                findings.taken(setting, tokens::identity_provider(url, config));
            }
        }
        None if takes_certificates => {}
        None => findings.mistake("authentication.url", tokens::NO_AUTHENTICATION),
    }
}

fn check_permissions(config: &AuthorizationConfig, findings: &mut Findings) {
    if !config.enforced {
        findings.warning(
            "authorization.enforced",
            "permissions are not enforced: every authenticated caller may do everything",
        );
    }
    for (index, grants) in config.grants_of_each().enumerate() {
        let setting = format!("authorization.permissions[{index}]");
        for grant in findings.taken(&setting, grants).into_iter().flatten() {
            if !grant.actor.can_log_in() {
                let actor = grant.actor.as_str();
                let what = format!("names {actor:?} on {}, which no caller can be", grant.path);
                findings.warning(format!("{setting}.actors"), what);
            }
        }
    }
}
