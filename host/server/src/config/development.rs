//! The identity provider for development.

use std::{fs, net::SocketAddr, path::PathBuf, sync::Arc, time::Duration};

use keywright_api::development_identity::{
    self as identity, DevelopmentIdentity, DevelopmentIdentitySettings, Grant,
};
use keywright_core::{Secret, ports::Clock};
use schemars::JsonSchema;
use serde::Deserialize;
use uuid::Uuid;

use super::{authentication::AuthenticationConfig, findings::Findings, source::Section};
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
    /// The file with the RSA key that signs tokens, PEM (PKCS#8).
    pub(crate) signing_key: PathBuf,
    /// Lifetime of an access token.
    pub(crate) access_token_seconds: u32,
    /// Lifetime of a refresh token.
    pub(crate) refresh_token_seconds: u32,
    /// The programs that may request tokens.
    pub(crate) clients: Vec<DevelopmentClient>,
    /// The users that may log in.
    pub(crate) users: Vec<DevelopmentUser>,
}

/// A client of the development identity provider.
#[derive(Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct DevelopmentClient {
    /// The client's id.
    pub(crate) id: String,
    /// The client's secret; empty for a program on users' own machines. It protects only a development server.
    pub(crate) secret: String,
    /// The addresses to which the browser may be redirected after a login, such as the console's. Without them, users can't
    /// log in to this client in the browser.
    #[serde(default)]
    pub(crate) redirect_uris: Vec<String>,
}

/// A user of the development identity provider.
#[derive(Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct DevelopmentUser {
    /// The user's id in tokens.
    pub(crate) id: Uuid,
    /// The name to log in with.
    pub(crate) name: String,
    /// The password to log in with. It protects only a development server.
    pub(crate) password: String,
}

impl DevelopmentClient {
    fn grants(&self) -> Vec<Grant> {
        let mut grants = vec![Grant::Password, Grant::RefreshToken];
        if !self.secret.is_empty() {
            grants.push(Grant::ClientCredentials);
        }
        if !self.redirect_uris.is_empty() {
            grants.push(Grant::AuthorizationCode);
        }
        grants
    }
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
            "the development identity provider can't be served on {other}, because its secrets are public; listen only on \
             loopback addresses, or remove the section development_identity_provider"
        )))
    }

    pub(crate) fn identity_provider(
        &self,
        authentication: &AuthenticationConfig,
        clock: Arc<dyn Clock>,
    ) -> Result<DevelopmentIdentity, StartupError> {
        let signing_key = fs::read_to_string(&self.signing_key)
            .on_file("reading the token signing key", &self.signing_key)?;
        let issuer = authentication.url.clone().ok_or_else(|| {
            StartupError::new(
                "authentication.url: is required for the development identity provider, as its own address, such as \
                 https://127.0.0.1:8844/identity",
            )
        })?;
        let scopes = &authentication.scopes_required;
        let users = self.users.iter().map(|user| identity::DevelopmentUser {
            id: user.id,
            name: user.name.clone(),
            password: Secret::new(user.password.clone()),
            scopes: scopes.clone(),
        });
        let settings = DevelopmentIdentitySettings {
            signing_key_pem: Secret::new(signing_key),
            issuer,
            path_prefix: IDENTITY_PATH.to_owned(),
            clients: self.identity_clients(scopes),
            users: users.collect(),
        };
        DevelopmentIdentity::new(settings, clock)
            .while_doing("development_identity_provider.signing_key")
    }

    fn identity_clients(&self, scopes: &[String]) -> Vec<identity::DevelopmentClient> {
        let seconds = |seconds: u32| Duration::from_secs(seconds.into());
        let clients = self.clients.iter();
        clients
            .map(|client| identity::DevelopmentClient {
                id: client.id.clone(),
                secret: Secret::new(client.secret.clone()),
                grants: client.grants(),
                redirect_uris: client.redirect_uris.clone(),
                scopes: scopes.to_vec(),
                access_token_lifetime: seconds(self.access_token_seconds),
                refresh_token_lifetime: seconds(self.refresh_token_seconds),
            })
            .collect()
    }
}
