//! The identity provider for development.

use std::{net::SocketAddr, path::PathBuf, sync::Arc};

use keywright_api::development_identity::{
    DevelopmentClient, DevelopmentIdentity, DevelopmentIdentitySettings, DevelopmentUser,
};
use keywright_core::{Secret, ports::Clock};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{
    authentication::AuthenticationConfig,
    findings::Findings,
    source::{Section, read_text},
    values::Number,
};
use crate::{
    process,
    started::{StartupContext, StartupError},
};

/// The path of the development identity provider.
pub(crate) const IDENTITY_PATH: &str = "/identity";

/// The identity provider for development, with its clients and users.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct DevelopmentConfig {
    /// The file with the RSA key that signs tokens, in PEM (PKCS#8).
    pub(crate) signing_key: PathBuf,
    /// Lifetime of an access token.
    pub(crate) access_token_seconds: Number<1, 4_294_967_295, 3_600>,
    /// Lifetime of a refresh token.
    pub(crate) refresh_token_seconds: Number<1, 4_294_967_295, 86_400>,
    /// The programs that may request tokens.
    pub(crate) clients: Vec<DevelopmentClient>,
    /// The users that may log in.
    pub(crate) users: Vec<DevelopmentUser>,
}

impl Section for DevelopmentConfig {
    fn paths_mut(&mut self) -> Vec<&mut PathBuf> {
        vec![&mut self.signing_key]
    }
}

impl DevelopmentConfig {
    /// Checks the section, for a server on these addresses.
    pub(crate) fn check(
        &self,
        authentication: Option<&AuthenticationConfig>,
        addresses: &[SocketAddr],
        findings: &mut Findings,
    ) {
        let section = "development_identity_provider";
        findings.warning(
            section,
            "its secrets are public; never use this configuration in production",
        );
        findings.ok_or_report(section, Self::check_addresses(addresses));
        for (index, client) in self.clients.iter().enumerate() {
            let setting = format!("{section}.clients[{index}]");
            let mut earlier = self.clients.iter().take(index);
            if earlier.any(|earlier| earlier.id == client.id) {
                findings.mistake(format!("{setting}.id"), "is the id of another client");
            }
            if !client.redirect_uris.iter().all(|uri| uri.contains("://")) {
                findings.mistake(format!("{setting}.redirect_uris"), "each must be a URL");
            }
        }
        if let Some(authentication) = authentication {
            let setting = if authentication.url.is_some() {
                "development_identity_provider.signing_key"
            } else {
                "authentication.url"
            };
            let provider = self.identity_provider(authentication, process::clock());
            findings.ok_or_report(setting, provider);
        }
    }

    /// Checks that the identity provider is served on loopback addresses only.
    pub(crate) fn check_addresses(addresses: &[SocketAddr]) -> Result<(), StartupError> {
        let mut addresses = addresses.iter();
        let Some(other) = addresses.find(|address| !address.ip().is_loopback()) else {
            return Ok(());
        };
        Err(StartupError::new(format!(
            "development_identity_provider: can't be served on {other}, because its secrets are public; listen only on \
             loopback addresses, or remove this section"
        )))
    }

    pub(crate) fn identity_provider(
        &self,
        authentication: &AuthenticationConfig,
        clock: Arc<dyn Clock>,
    ) -> Result<DevelopmentIdentity, StartupError> {
        let signing_key = read_text(&self.signing_key)
            .on_file("reading the token signing key", &self.signing_key)?;
        let issuer = authentication.url.clone().ok_or_else(|| {
            StartupError::new(
                "authentication.url: is required for the development identity provider, as its own address, such as \
                 https://127.0.0.1:8844/identity",
            )
        })?;
        let settings = DevelopmentIdentitySettings {
            signing_key_pem: Secret::new(signing_key),
            issuer,
            path_prefix: IDENTITY_PATH.to_owned(),
            clients: self.clients.clone(),
            users: self.users.clone(),
            scopes: authentication.scopes_required.clone(),
            access_token_lifetime: self.access_token_seconds.seconds(),
            refresh_token_lifetime: self.refresh_token_seconds.seconds(),
        };
        DevelopmentIdentity::new(settings, clock)
            .while_doing("development_identity_provider.signing_key")
    }
}
