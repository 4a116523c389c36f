//! The console.

use std::path::PathBuf;

use keywright_console::{ConsoleSettings, SessionLimits, origin};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{
    authentication::AuthenticationConfig,
    findings::Findings,
    source::Section,
    values::{Number, SecretSource},
};
use crate::started::StartupError;

/// The console, a user interface for browsers at `/console`. Users log in through the identity provider at `authentication.url`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ConsoleConfig {
    /// The https address at which browsers reach this server, without a path, such as `https://keywright.example:8844`. The
    /// identity provider must accept `/console/callback` below it as the client's redirect URI.
    url: String,
    /// The id of the identity provider's client through which users log in.
    client_id: String,
    /// The file that contains the client's secret. A trailing line break is ignored. Either this or
    /// `client_secret_environment`, or neither for a public client.
    client_secret_file: Option<PathBuf>,
    /// The environment variable that contains the client's secret.
    client_secret_environment: Option<String>,
    /// The scopes to request, which must include `openid`. Defaults to `openid` and `authentication.scopes_required`.
    scopes: Option<Vec<String>>,
    /// The service for which access tokens are requested (RFC 8707), usually `authentication.audience`. Some providers require it.
    resource: Option<String>,
    /// Maximum time after a login until the user must log in again.
    #[serde(default)]
    session_seconds_max: Number<1, 604_800, 28_800>,
    /// Maximum time between two requests of a user; then the user must log in again.
    #[serde(default)]
    idle_seconds_max: Number<1, 86_400, 1_800>,
    /// Maximum number of sessions; further logins are refused.
    #[serde(default)]
    sessions_max: Number<1, 100_000, 1_000>,
    /// Maximum number of sessions of one user; a further login ends the oldest one.
    #[serde(default)]
    sessions_per_actor_max: Number<1, 1_000, 10>,
}

impl Section for ConsoleConfig {
    fn paths_mut(&mut self) -> Vec<&mut PathBuf> {
        self.client_secret_file.iter_mut().collect()
    }
}

impl ConsoleConfig {
    pub(crate) fn address(&self) -> String {
        format!("{}/console", self.url.trim_end_matches('/'))
    }

    /// Validates and returns the settings.
    pub(crate) fn settings(
        &self,
        authentication: &AuthenticationConfig,
    ) -> Result<ConsoleSettings, StartupError> {
        let scopes = self.scopes.clone().unwrap_or_else(|| {
            let required = authentication.scopes_required.iter().cloned();
            [OPENID.to_owned()].into_iter().chain(required).collect()
        });
        if !scopes.iter().any(|scope| scope == OPENID) {
            return Err(StartupError::new("console.scopes: must include openid"));
        }
        if self.client_id.is_empty() {
            return Err(StartupError::new("console.client_id: must not be empty"));
        }
        Ok(ConsoleSettings {
            origin: self.origin()?,
            client_id: self.client_id.clone(),
            client_secret: SecretSource::read_optional(self.client_secret()?, SECRET)?,
            scopes,
            resource: self.resource.clone(),
            sessions: SessionLimits {
                age_max: self.session_seconds_max.seconds(),
                idle_max: self.idle_seconds_max.seconds(),
                sessions_max: self.sessions_max.count(),
                sessions_per_actor_max: self.sessions_per_actor_max.count(),
            },
        })
    }

    fn client_secret(&self) -> Result<Option<SecretSource<'_>>, StartupError> {
        let file = self.client_secret_file.as_deref();
        SecretSource::of(SECRET, file, self.client_secret_environment.as_deref())
    }

    fn origin(&self) -> Result<String, StartupError> {
        origin(self.url.trim_end_matches('/')).ok_or_else(|| {
            StartupError::new(
                "console.url: must be an https address without a path, such as https://keywright.example:8844",
            )
        })
    }

    /// Checks the section.
    pub(crate) fn check(&self, authentication: &AuthenticationConfig, findings: &mut Findings) {
        if let Some(file) = &self.client_secret_file {
            findings.warn_if_world_accessible("console.client_secret_file", file);
        }
        let secret = self.client_secret().ok().flatten();
        let is_readable = secret.is_none_or(|secret| {
            let read = findings.ok_or_report(secret.setting(SECRET), secret.read());
            read.is_some()
        });
        if is_readable {
            findings.ok_or_report("console", self.settings(authentication));
        }
        if authentication.accepts_id_tokens_of(&self.client_id) {
            let what = "no scope is required and this client is an accepted audience, so the server also accepts ID tokens of \
                        the console as access tokens; use another client for the console, or require a scope";
            findings.warning("console.client_id", what);
        }
        authentication.check_login_provider(findings);
    }
}

const OPENID: &str = "openid";

/// The prefix of the settings that locate the client's secret.
const SECRET: &str = "console.client_secret";
