//! The verifier of access tokens.

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

/// Returns the token verifier, if tokens are accepted: with the key of the development identity provider, the
/// configured key, or the identity provider's published keys.
///
/// # Errors
/// If neither tokens nor client certificates are accepted.
pub(crate) fn token_verifier(
    config: &Config,
    development: Option<&DevelopmentIdentity>,
    clock: Arc<dyn Clock>,
) -> Result<Option<TokenVerifier>, StartRefused> {
    let verifier = configured(&config.authentication, development, clock)?;
    if verifier.is_none() && config.server.tls.client_authorities.is_none() {
        return Err(StartRefused::new(NO_AUTHENTICATION));
    }
    Ok(verifier)
}

/// The error if no method of authentication is configured.
pub(crate) const NO_AUTHENTICATION: &str = "no authentication is configured: set authentication.url or authentication.static_key for access tokens, or \
     server.tls.client_authorities for client certificates";

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
    let Some((_, url)) = config.provider_address() else {
        return Ok(None);
    };
    let provider = identity_provider(url, config)?;
    let pace = config.key_pace();
    Ok(Some(TokenVerifier::with_identity_provider(
        provider, pace, rules, clock,
    )))
}

/// Creates a verifier with the configured key.
pub(crate) fn by_static_key(
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

/// Creates a client of the identity provider, without sending a request.
pub(crate) fn identity_provider(
    url: &str,
    config: &AuthenticationConfig,
) -> Result<HttpsIdentityProvider, StartRefused> {
    let authorities = config.trusted_authorities.as_deref();
    HttpsIdentityProvider::new(&HttpsIdentityProviderSettings {
        url: url.to_owned(),
        public_url: config.url.clone(),
        trusted_certificates_pem: authorities.map(read_authorities).transpose()?,
        timeout: HttpsIdentityProviderSettings::TIMEOUT,
    })
    .map_err(|cause| StartRefused::while_doing("using the identity provider's address", cause))
}

/// Reads the CAs trusted to sign the identity provider's certificate.
pub(crate) fn read_authorities(path: &Path) -> Result<String, StartRefused> {
    read(
        path,
        "reading the authorities trusted for the identity provider",
    )
}

fn read(path: &Path, doing: &'static str) -> Result<String, StartRefused> {
    fs::read_to_string(path).map_err(|cause| StartRefused::file(doing, path, cause))
}
