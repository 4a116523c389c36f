//! Which tokens are accepted.

use std::path::PathBuf;

use keywright_api::authentication::{ClaimSettings, KeyPace, TokenRules, TokenRulesRefused};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};

use super::number::Number;

/// Which tokens are accepted. Without `url` and `static_key`, none are.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct AuthenticationConfig {
    /// The identity provider's address, https, as clients reach it: `/info` shows it. Below it, the provider says where its
    /// keys are: at `/.well-known/openid-configuration`. A slash at the end is dropped.
    #[serde(deserialize_with = "without_slash_at_the_end")]
    pub(crate) url: Option<String>,
    /// The identity provider's address, https, as this server reaches it, when that is another. A slash at the end is dropped.
    #[serde(deserialize_with = "without_slash_at_the_end")]
    pub(crate) internal_url: Option<String>,
    /// The file with authorities to trust, PEM, in the place of the platform's, when this server asks the provider for its keys.
    pub(crate) trusted_authorities: Option<PathBuf>,
    /// How old the provider's keys become before they are fetched again, in seconds.
    pub(crate) keys_age_seconds_max: Number<1, 86_400, 300>,
    /// How long to wait before the provider is asked for its keys again, whatever tokens name, in seconds. With 0, whoever
    /// invents names of keys has it asked without a pause, by one request at a time.
    pub(crate) keys_interval_seconds_min: Number<0, 3_600, 5>,
    /// A key that verifies all tokens, in the place of the provider's published ones.
    pub(crate) static_key: Option<StaticKeyConfig>,
    /// The audience that tokens must be for (`aud`). Without it, any will do.
    pub(crate) audience: Option<String>,
    /// The scopes that a token must have, all of them.
    pub(crate) scopes_required: Vec<String>,
    /// In which claims tokens say what is read of them.
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

/// Clients append paths to the address.
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
    /// What a token must say.
    pub(crate) fn rules(&self) -> Result<TokenRules, TokenRulesRefused> {
        TokenRules::new(
            self.scopes_required.clone(),
            self.audience.clone(),
            self.claims.clone(),
        )
    }

    /// How often the provider is asked for its keys.
    pub(crate) fn key_pace(&self) -> KeyPace {
        KeyPace {
            age_max: self.keys_age_seconds_max.seconds(),
            interval_min: self.keys_interval_seconds_min.seconds(),
        }
    }

    /// The identity provider's address as this server reaches it, and the setting that says it.
    pub(crate) fn provider_address(&self) -> Option<(&'static str, &str)> {
        let internal = self.internal_url.as_deref();
        let internal = internal.map(|url| ("authentication.internal_url", url));
        internal.or_else(|| Some(("authentication.url", self.url.as_deref()?)))
    }

    /// The files that are named.
    pub(super) fn files_mut(&mut self) -> impl Iterator<Item = &mut PathBuf> {
        let static_key = self.static_key.as_mut().map(|key| &mut key.public_key);
        self.trusted_authorities.iter_mut().chain(static_key)
    }
}
