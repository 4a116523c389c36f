//! What checks the tokens of callers.

use std::{fs, path::Path, sync::Arc};

use keywright_api::{
    authentication::{
        HttpsIdentityProvider, HttpsIdentityProviderSettings, StaticKey, TokenRules, TokenVerifier,
    },
    development_identity::DevelopmentIdentity,
};
use keywright_core::ports::Clock;

use crate::{
    config::{AuthenticationConfig, Config, StaticKeyConfig},
    started::StartRefused,
};

/// What checks tokens, if any are accepted: by the development identity provider's key, by the configured one, or by those
/// that the identity provider publishes. Where none are, there must be certificates that clients log in with.
pub(crate) fn token_verifier(
    config: &Config,
    development: Option<&DevelopmentIdentity>,
    clock: Arc<dyn Clock>,
) -> Result<Option<TokenVerifier>, StartRefused> {
    let verifier = configured(&config.authentication, development, clock)?;
    if verifier.is_none() && config.server.tls.client_authorities.is_none() {
        return Err(StartRefused::new(
            "nobody could log in: authentication.url or authentication.static_key is needed for tokens, or \
             server.tls.client_authorities for client certificates",
        ));
    }
    Ok(verifier)
}

fn configured(
    config: &AuthenticationConfig,
    development: Option<&DevelopmentIdentity>,
    clock: Arc<dyn Clock>,
) -> Result<Option<TokenVerifier>, StartRefused> {
    let rules = config
        .rules()
        .map_err(|cause| StartRefused::while_doing("reading the rules for access tokens", cause))?;
    if let Some(development) = development {
        return Ok(Some(development.token_verifier(rules, clock)));
    }
    if let Some(key) = &config.static_key {
        return by_static_key(key, rules, clock).map(Some);
    }
    match config.internal_url.as_ref().or(config.url.as_ref()) {
        Some(url) => by_identity_provider(url, config, rules, clock).map(Some),
        None => Ok(None),
    }
}

fn by_static_key(
    key: &StaticKeyConfig,
    rules: TokenRules,
    clock: Arc<dyn Clock>,
) -> Result<TokenVerifier, StartRefused> {
    let public_key_pem = read(&key.public_key, "reading the token verification key")?;
    let key = StaticKey {
        public_key_pem: &public_key_pem,
        issuer: &key.issuer,
    };
    TokenVerifier::with_static_key(&key, rules, clock)
        .map_err(|cause| StartRefused::while_doing("using the token verification key", cause))
}

fn by_identity_provider(
    url: &str,
    config: &AuthenticationConfig,
    rules: TokenRules,
    clock: Arc<dyn Clock>,
) -> Result<TokenVerifier, StartRefused> {
    let trusted_certificates_pem = config
        .trusted_authorities
        .as_deref()
        .map(|path| {
            read(
                path,
                "reading the authorities trusted for the identity provider",
            )
        })
        .transpose()?;
    let provider = HttpsIdentityProvider::new(&HttpsIdentityProviderSettings {
        url: url.to_owned(),
        public_url: config.url.clone(),
        trusted_certificates_pem,
        timeout: HttpsIdentityProviderSettings::TIMEOUT,
    })
    .map_err(|cause| StartRefused::while_doing("using the identity provider's address", cause))?;
    Ok(TokenVerifier::with_identity_provider(
        provider,
        config.key_pace(),
        rules,
        clock,
    ))
}

fn read(path: &Path, doing: &'static str) -> Result<String, StartRefused> {
    fs::read_to_string(path).map_err(|cause| StartRefused::file(doing, path, cause))
}
