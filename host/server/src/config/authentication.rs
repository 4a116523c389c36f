use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use keywright_api::{
    authentication::{
        ClaimSettings, HttpsIdentityProvider, HttpsIdentityProviderSettings, IdentityProviderError,
        KeyPace, TokenRules, TokenVerifier, https_url,
    },
    development_identity::DevelopmentIdentity,
};
use keywright_core::ports::Clock;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, de::Error};

use super::{
    findings::Findings,
    source::{Section, read_text},
    values::Number,
};
use crate::{
    process,
    started::{StartupContext, StartupError},
    tls::certificates::read_trusted_authorities,
};

/// Verification of access tokens. Without `url` and `static_key`, no access tokens are accepted.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct AuthenticationConfig {
    /// The identity provider's https URL for clients, without a user, as shown by `/info`. The provider publishes its metadata
    /// at `/.well-known/openid-configuration` below it. A trailing slash is removed.
    #[serde(deserialize_with = "without_trailing_slashes")]
    pub(crate) url: Option<String>,
    /// The identity provider's https URL for this server, without a user, if it differs. A trailing slash is removed.
    #[serde(deserialize_with = "without_trailing_slashes")]
    pub(crate) internal_url: Option<String>,
    /// The file with the CA certificates to trust (PEM) instead of the platform's, when fetching the provider's keys.
    pub(crate) trusted_authorities: Option<PathBuf>,
    /// Maximum age of the provider's keys before they are fetched again.
    pub(crate) keys_age_seconds_max: Number<1, 86_400, 300>,
    /// Minimum time between two fetches of the provider's keys, even if a token names an unknown key. With 0, a client
    /// that invents key names causes continuous fetches, one at a time.
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
    /// The file with the public key, RSA of 2048 to 8192 bits or P-256, in PEM.
    pub(crate) public_key: PathBuf,
    /// The issuer that tokens must name.
    #[serde(deserialize_with = "not_empty")]
    pub(crate) issuer: String,
}

fn not_empty<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let text = String::deserialize(deserializer)?;
    if text.is_empty() {
        return Err(D::Error::custom("must not be empty"));
    }
    Ok(text)
}

/// Removes trailing slashes, because clients append paths to the URL.
fn without_trailing_slashes<'de, D: Deserializer<'de>>(
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

impl Section for AuthenticationConfig {
    fn paths_mut(&mut self) -> Vec<&mut PathBuf> {
        let static_key = self.static_key.as_mut().map(|key| &mut key.public_key);
        self.trusted_authorities
            .iter_mut()
            .chain(static_key)
            .collect()
    }
}

impl AuthenticationConfig {
    /// Returns the token verifier, if tokens are accepted: with the key of the development identity provider, the
    /// configured key, or the identity provider's published keys. It is an error if neither tokens nor client certificates
    /// are accepted.
    pub(crate) fn token_verifier(
        &self,
        development: Option<&DevelopmentIdentity>,
        accepts_certificates: bool,
        clock: Arc<dyn Clock>,
    ) -> Result<Option<TokenVerifier>, StartupError> {
        let rules = self.rules()?;
        if let Some(development) = development {
            return Ok(Some(development.token_verifier(rules, clock)));
        }
        if let Some(key) = &self.static_key {
            return key.verifier(rules, clock).map(Some);
        }
        match self.provider_address() {
            Some((setting, url)) => {
                let provider = self.identity_provider(setting, url)?;
                let pace = KeyPace {
                    age_max: self.keys_age_seconds_max.seconds(),
                    interval_min: self.keys_interval_seconds_min.seconds(),
                };
                let verifier = TokenVerifier::with_identity_provider(provider, pace, rules, clock);
                Ok(Some(verifier))
            }
            None if accepts_certificates => Ok(None),
            None => Err(StartupError::new(NO_AUTHENTICATION)),
        }
    }

    /// Checks the section. No request is sent.
    pub(crate) fn check(
        &self,
        is_development: bool,
        accepts_certificates: bool,
        findings: &mut Findings,
    ) {
        let rules = findings.ok_or_report("authentication", self.rules());
        if is_development {
            if self.static_key.is_some() {
                let what = "has no effect with development_identity_provider; remove one of them";
                findings.mistake("authentication.static_key", what);
            }
            return;
        }
        if let Some(key) = &self.static_key {
            if let Some(rules) = rules {
                let verifier = key.verifier(rules, process::clock());
                findings.ok_or_report("authentication.static_key.public_key", verifier);
            }
            return;
        }
        match self.provider_address() {
            Some((setting, url)) => self.check_provider(setting, url, findings),
            None if accepts_certificates => {}
            None => findings.mistake(URL, NO_AUTHENTICATION),
        }
    }

    /// Returns whether an ID token of this client passes as an access token: its audience is the client, and it has no scopes.
    pub(crate) fn accepts_id_tokens_of(&self, client: &str) -> bool {
        let audience = self.audience.as_ref();
        self.scopes_required.is_empty() && audience.is_none_or(|audience| audience == client)
    }

    /// Checks that the console's users can log in. No request is sent, and no mistake is reported twice.
    pub(crate) fn check_login_provider(&self, findings: &mut Findings) {
        match self.provider_address() {
            Some((setting, url)) => self.check_provider(setting, url, findings),
            None => findings.mistake("console", NO_LOGIN_PROVIDER),
        }
    }

    fn check_provider(&self, setting: &str, url: &str, findings: &mut Findings) {
        let authorities = self.trusted_authorities.as_deref();
        let authorities = authorities.map(read_authorities).transpose();
        if findings.ok_or_report(AUTHORITIES, authorities).is_some() {
            findings.ok_or_report(setting, self.identity_provider(setting, url));
        }
    }

    fn rules(&self) -> Result<TokenRules, StartupError> {
        // Clients get the URL even if the server does not use it.
        for (setting, url) in [(URL, &self.url), (INTERNAL_URL, &self.internal_url)] {
            if url.as_deref().is_some_and(|url| https_url(url).is_none()) {
                let cause = IdentityProviderError::AddressMalformed;
                return Err(StartupError::while_doing(setting, cause));
            }
        }
        TokenRules::new(
            self.scopes_required.clone(),
            self.audience.clone(),
            self.claims.clone(),
        )
        .map_err(|cause| StartupError::new(cause.to_string()))
    }

    /// Creates a client of the identity provider for the login of users, without sending a request.
    pub(crate) fn login_provider(&self) -> Result<HttpsIdentityProvider, StartupError> {
        let address = self.provider_address();
        let (setting, url) =
            address.ok_or_else(|| StartupError::new(format!("console: {NO_LOGIN_PROVIDER}")))?;
        self.identity_provider(setting, url)
    }

    /// Creates a client of the identity provider at the URL of this setting, without sending a request.
    fn identity_provider(
        &self,
        setting: &str,
        url: &str,
    ) -> Result<HttpsIdentityProvider, StartupError> {
        let authorities = self.trusted_authorities.as_deref();
        HttpsIdentityProvider::new(&HttpsIdentityProviderSettings {
            url: url.to_owned(),
            public_url: self.url.clone(),
            trusted_certificates_pem: authorities.map(read_authorities).transpose()?,
            timeout: HttpsIdentityProviderSettings::TIMEOUT,
        })
        .map_err(|cause| {
            let is_about_address = matches!(cause, IdentityProviderError::AddressMalformed);
            let setting = if is_about_address {
                setting
            } else {
                AUTHORITIES
            };
            StartupError::while_doing(setting, cause)
        })
    }

    /// Returns the identity provider's URL for this server, and the name of the setting.
    fn provider_address(&self) -> Option<(&'static str, &str)> {
        let internal = self.internal_url.as_deref();
        let internal = internal.map(|url| (INTERNAL_URL, url));
        internal.or_else(|| Some((URL, self.url.as_deref()?)))
    }
}

impl StaticKeyConfig {
    fn verifier(
        &self,
        rules: TokenRules,
        clock: Arc<dyn Clock>,
    ) -> Result<TokenVerifier, StartupError> {
        let path = &self.public_key;
        let read = read_text(path);
        let public_key_pem = read.on_file("reading the token verification key", path)?;
        TokenVerifier::with_static_key(&public_key_pem, &self.issuer, rules, clock)
            .while_doing("using the token verification key")
    }
}

/// Reads the CAs trusted to sign the identity provider's certificate.
fn read_authorities(path: &Path) -> Result<String, StartupError> {
    read_trusted_authorities("the identity provider", path)
}

/// The error if the console has no identity provider.
const NO_LOGIN_PROVIDER: &str = "requires authentication.url, the identity provider's address";

const URL: &str = "authentication.url";

const INTERNAL_URL: &str = "authentication.internal_url";

const AUTHORITIES: &str = "authentication.trusted_authorities";

/// The error if no method of authentication is configured.
const NO_AUTHENTICATION: &str = "no authentication is configured: set authentication.url or authentication.static_key for access tokens, or \
     server.tls.client_authorities for client certificates";
