//! Which access tokens are accepted.

use std::path::PathBuf;

use keywright_api::authentication::{ClaimSettings, KeyPace, TokenRules, TokenRulesRefused};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};

use super::number::Number;

/// Which access tokens are accepted. Without `url` and `static_key`, none are.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct AuthenticationConfig {
    /// The identity provider's https URL for clients, as shown by `/info`. The provider publishes its metadata
    /// at `/.well-known/openid-configuration` below it. A trailing slash is removed.
    #[serde(deserialize_with = "without_slash_at_the_end")]
    pub(crate) url: Option<String>,
    /// The identity provider's https URL for this server, if it differs. A trailing slash is removed.
    #[serde(deserialize_with = "without_slash_at_the_end")]
    pub(crate) internal_url: Option<String>,
    /// The file with the CA certificates to trust, PEM, instead of the platform's, when fetching the provider's keys.
    pub(crate) trusted_authorities: Option<PathBuf>,
    /// Maximum age of the provider's keys before they are fetched again.
    pub(crate) keys_age_seconds_max: Number<1, 86_400, 300>,
    /// Minimum time between two fetches of the provider's keys, whichever keys tokens name. With 0, a client that
    /// invents key names causes continuous fetches, one at a time.
    pub(crate) keys_interval_seconds_min: Number<0, 3_600, 5>,
    /// A key that verifies all tokens, instead of the provider's published keys.
    pub(crate) static_key: Option<StaticKeyConfig>,
    /// The required audience of tokens (`aud`). Without it, any audience is accepted.
    pub(crate) audience: Option<String>,
    /// The scopes that a token must have, all of them.
    pub(crate) scopes_required: Vec<String>,
    /// The claims to read from tokens.
    pub(crate) claims: ClaimSettings,
}

/// A key that verifies all tokens.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct StaticKeyConfig {
    /// The file with the public key, RSA of 2048 to 8192 bits or P-256, PEM.
    pub(crate) public_key: PathBuf,
    /// The issuer that tokens must name.
    pub(crate) issuer: String,
}

/// Removes trailing slashes, because clients append paths to the URL.
fn without_slash_at_the_end<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<String>, D::Error> {
    let url = Option::<String>::deserialize(deserializer)?;
    Ok(url.map(|url| url.trim_end_matches('/').to_owned()))
}

impl Default for AuthenticationConfig {
    fn default() -> Self {
        Self {
            url: None,
            internal_url: None,
            trusted_authorities: None,
            keys_age_seconds_max: Number::default(),
            keys_interval_seconds_min: Number::default(),
            static_key: None,
            audience: None,
            scopes_required: TokenRules::SCOPES_REQUIRED.map(str::to_owned).into(),
            claims: ClaimSettings::default(),
        }
    }
}

impl AuthenticationConfig {
    /// Returns the rules for tokens.
    pub(crate) fn rules(&self) -> Result<TokenRules, TokenRulesRefused> {
        TokenRules::new(
            self.scopes_required.clone(),
            self.audience.clone(),
            self.claims.clone(),
        )
    }

    /// Returns how often the provider's keys are fetched.
    pub(crate) fn key_pace(&self) -> KeyPace {
        KeyPace {
            age_max: self.keys_age_seconds_max.seconds(),
            interval_min: self.keys_interval_seconds_min.seconds(),
        }
    }

    /// Returns the identity provider's URL for this server, and the name of the setting.
    pub(crate) fn provider_address(&self) -> Option<(&'static str, &str)> {
        let internal = self.internal_url.as_deref();
        let internal = internal.map(|url| ("authentication.internal_url", url));
        internal.or_else(|| Some(("authentication.url", self.url.as_deref()?)))
    }

    /// Returns the configured paths.
    pub(super) fn files_mut(&mut self) -> impl Iterator<Item = &mut PathBuf> {
        let static_key = self.static_key.as_mut().map(|key| &mut key.public_key);
        self.trusted_authorities.iter_mut().chain(static_key)
    }
}
