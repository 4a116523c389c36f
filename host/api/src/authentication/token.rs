//! Tokens: the requirements for them, their parts, and their claims.

use std::sync::Arc;

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use chrono::{DateTime, Utc};
use jsonwebtoken::Algorithm;
use keywright_core::{authorization::Authentication, permission::Actor};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use strum::IntoStaticStr;

/// The identity of a caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Identity {
    pub(super) actor: Actor,
    pub(super) authentication: Authentication,
}

impl Identity {
    /// Creates the identity of a valid token. Without a subject, the client's or user's id is the subject.
    pub(super) fn of_token(actor: Actor, subject: Option<&str>) -> Self {
        let (_, id) = actor.as_str().split_once(':').unwrap_or_default();
        let subject = subject.unwrap_or(id).to_owned();
        Self {
            authentication: Authentication::Token { subject },
            actor,
        }
    }
}

/// The requirements for a token, in addition to a valid signature and time.
#[derive(Clone, Debug)]
pub struct TokenRules {
    pub(super) scopes_required: Vec<String>,
    pub(super) audience: Option<String>,
    pub(super) claims: ClaimSettings,
    /// The required scopes in a challenge (RFC 6750, section 3).
    pub(super) scopes_text: Arc<str>,
}

/// The claims to read from tokens. The defaults are for UAA.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ClaimSettings {
    /// The claim that contains the scopes.
    pub scope: String,
    /// The format of the scopes. The other format is rejected.
    pub scope_form: ScopeForm,
    /// The claim that contains the id of the client to which the token was issued.
    pub client_id: String,
    /// The claim that contains the id of the user for whom the token was issued. The id must never change.
    pub user_id: String,
    /// The claim that contains the name of the client or user for the audit trail.
    pub subject: String,
    /// How to distinguish tokens of clients and users.
    pub grant_type: GrantTypeSettings,
    /// The ids of clients, for providers whose client tokens have the same id in `client_id` and `subject`, and no claim for
    /// `grant_type` (RFC 9068). A token with the same id in both claims belongs to the client if the id is listed here;
    /// otherwise it is rejected. If the claims differ, it belongs to a user. List no client through which users log in. `*` matches every
    /// client; use it only if no user's id can ever equal a client's. If empty, `grant_type` applies.
    pub client_subjects: Vec<String>,
}

/// The format of scopes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ScopeForm {
    /// An array of strings, as for UAA.
    #[default]
    Array,
    /// One string with spaces between the scopes (RFC 8693, section 4.2; RFC 9068, section 2.2.3).
    Text,
}

/// How to distinguish tokens of clients, which act for themselves, and of users.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct GrantTypeSettings {
    /// The claim that contains the grant type.
    pub claim: String,
    /// The values in tokens of clients; `*` matches any value that is not in the other list.
    pub of_clients: Vec<String>,
    /// The values in tokens of users; `*` matches any value that is not in the other list.
    pub of_users: Vec<String>,
    /// How tokens without the claim are treated.
    pub when_absent: WhenAbsent,
}

/// How tokens without a grant type are treated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum WhenAbsent {
    /// They are rejected.
    #[default]
    Refused,
    /// They are tokens of clients.
    Client,
    /// They are tokens of users.
    User,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bearer {
    /// A client that acts for itself.
    Client,
    User,
}

/// Invalid rules for tokens.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the variants mean")]
pub enum TokenRulesError {
    #[error("authentication.claims.{0}: must not be empty; set the name of a claim")]
    ClaimUnnamed(&'static str),
    #[error(
        "authentication.claims.grant_type: {0:?} is in both of_clients and of_users; remove it from one of the two"
    )]
    GrantTypeAmbiguous(String),
    #[error(
        "authentication.claims.grant_type: lists no grant types; add one to of_clients or of_users, or set when_absent"
    )]
    GrantTypesMissing,
    #[error(
        "authentication.claims.client_subjects: can't be combined with authentication.claims.grant_type; remove one of the two"
    )]
    GrantTypeUnused,
    #[error(
        "authentication.audience: is required if authentication.scopes_required is empty, because tokens for other \
         services would be accepted otherwise"
    )]
    NothingRequired,
    #[error("authentication.audience: must not be empty")]
    AudienceEmpty,
    #[error(
        "authentication.scopes_required: {0:?} is not a scope; scopes are ASCII without spaces, quotes and backslashes"
    )]
    ScopeMalformed(String),
}

impl TokenRules {
    /// The scopes required by default.
    pub const SCOPES_REQUIRED: [&str; 2] = ["credhub.read", "credhub.write"];

    /// Validates the settings.
    pub fn new(
        scopes_required: Vec<String>,
        audience: Option<String>,
        claims: ClaimSettings,
    ) -> Result<Self, TokenRulesError> {
        if let Some(scope) = scopes_required.iter().find(|scope| !is_scope(scope)) {
            return Err(TokenRulesError::ScopeMalformed(scope.clone()));
        }
        if audience.as_deref() == Some("") {
            return Err(TokenRulesError::AudienceEmpty);
        }
        if scopes_required.is_empty() && audience.is_none() {
            return Err(TokenRulesError::NothingRequired);
        }
        claims.refuse_unusable()?;
        Ok(Self {
            scopes_text: scopes_required.join(" ").into(),
            scopes_required,
            audience,
            claims,
        })
    }
}

impl Default for TokenRules {
    fn default() -> Self {
        let scopes_required = Self::SCOPES_REQUIRED.map(str::to_owned);
        Self {
            scopes_text: scopes_required.join(" ").into(),
            scopes_required: scopes_required.into(),
            audience: None,
            claims: ClaimSettings::default(),
        }
    }
}

impl Default for ClaimSettings {
    fn default() -> Self {
        Self {
            scope: "scope".to_owned(),
            scope_form: ScopeForm::default(),
            client_id: "client_id".to_owned(),
            user_id: "user_id".to_owned(),
            subject: "sub".to_owned(),
            grant_type: GrantTypeSettings::default(),
            client_subjects: Vec::new(),
        }
    }
}

impl ClaimSettings {
    /// Returns whether this client id is listed: then a token with this subject and client id belongs to the client.
    pub(super) fn is_client_subject(&self, client_id: &str) -> bool {
        let mut listed = self.client_subjects.iter();
        listed.any(|listed| listed == client_id || listed == ANY)
    }

    fn refuse_unusable(&self) -> Result<(), TokenRulesError> {
        for (field, claim) in [
            ("scope", &self.scope),
            ("client_id", &self.client_id),
            ("user_id", &self.user_id),
            ("subject", &self.subject),
            ("grant_type.claim", &self.grant_type.claim),
        ] {
            if claim.is_empty() {
                return Err(TokenRulesError::ClaimUnnamed(field));
            }
        }
        let has_subjects = !self.client_subjects.is_empty();
        if has_subjects && self.grant_type != GrantTypeSettings::default() {
            return Err(TokenRulesError::GrantTypeUnused);
        }
        self.grant_type.refuse_unusable()
    }
}

impl Default for GrantTypeSettings {
    fn default() -> Self {
        Self {
            claim: "grant_type".to_owned(),
            of_clients: vec!["client_credentials".to_owned()],
            of_users: vec!["password".to_owned()],
            when_absent: WhenAbsent::default(),
        }
    }
}

impl GrantTypeSettings {
    pub(super) fn bearer(&self, grant_type: Option<&str>) -> Option<Bearer> {
        let Some(grant_type) = grant_type else {
            return match self.when_absent {
                WhenAbsent::Refused => None,
                WhenAbsent::Client => Some(Bearer::Client),
                WhenAbsent::User => Some(Bearer::User),
            };
        };
        let lists = [
            (&self.of_clients, Bearer::Client),
            (&self.of_users, Bearer::User),
        ];
        let listed = |wanted: &str| {
            let mut lists = lists.iter();
            lists.find(|(list, _)| list.iter().any(|listed| listed == wanted))
        };
        listed(grant_type)
            .or_else(|| listed(ANY))
            .map(|(_, bearer)| *bearer)
    }

    fn refuse_unusable(&self) -> Result<(), TokenRulesError> {
        if let Some(ambiguous) = self
            .of_clients
            .iter()
            .find(|grant_type| self.of_users.contains(grant_type))
        {
            return Err(TokenRulesError::GrantTypeAmbiguous(ambiguous.clone()));
        }
        let has_no_grant_types = self.of_clients.is_empty() && self.of_users.is_empty();
        if has_no_grant_types && self.when_absent == WhenAbsent::Refused {
            return Err(TokenRulesError::GrantTypesMissing);
        }
        Ok(())
    }
}

/// Returns whether a text is a scope (RFC 6749, section 3.3).
fn is_scope(text: &str) -> bool {
    let is_scope_byte = |byte: u8| byte.is_ascii_graphic() && byte != b'"' && byte != b'\\';
    !text.is_empty() && text.bytes().all(is_scope_byte)
}

/// Matches any grant type or client that is not listed.
const ANY: &str = "*";

#[derive(Clone, Debug, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub(crate) enum TokenError {
    /// There is no token.
    Absent,
    /// The token was valid, but has expired.
    Expired,
    /// The token is invalid, or not valid yet; the reason is for the log.
    Invalid(&'static str),
    /// Tokens are not accepted, only client certificates.
    NotAccepted,
    /// The token is valid, but lacks one of these scopes.
    ScopesMissing(Arc<str>),
    /// The token can't be verified: no keys are available.
    Unverifiable,
}

/// A JWS in compact form (RFC 7515, section 7.1), not verified yet.
pub(super) struct SignedToken<'a> {
    /// The signed part: header and payload.
    pub(super) message: &'a str,
    pub(super) signature: Vec<u8>,
    pub(super) algorithm: Algorithm,
    pub(super) key_id: Option<String>,
    payload: &'a str,
}

impl<'a> SignedToken<'a> {
    /// Parses a token: three parts in base64url without padding, the first of which is a header with only supported features.
    /// Keys in the header (`jku`, `jwk`, `x5u`, `x5c`) are ignored: keys come only from the configuration and the trusted
    /// provider.
    pub(super) fn parse(token: &'a str) -> Result<Self, TokenError> {
        let malformed = TokenError::Invalid("malformed");
        let (message, signature) = token.rsplit_once('.').ok_or(malformed.clone())?;
        let (header, payload) = message
            .split_once('.')
            .filter(|(_, payload)| !payload.contains('.'))
            .ok_or(malformed.clone())?;
        let header = decode_object(header).ok_or(malformed.clone())?;
        let algorithm = match header.get("alg").and_then(Value::as_str) {
            Some("RS256") => Algorithm::RS256,
            Some("ES256") => Algorithm::ES256,
            _ => return Err(TokenError::Invalid("algorithm is neither RS256 nor ES256")),
        };
        refuse_extensions(&header)?;
        Ok(Self {
            message,
            signature: URL_SAFE_NO_PAD.decode(signature).map_err(|_| malformed)?,
            algorithm,
            key_id: match header.get("kid") {
                None => None,
                Some(Value::String(key_id)) => Some(key_id.clone()),
                Some(_) => return Err(TokenError::Invalid("key id is not a string")),
            },
            payload,
        })
    }

    /// Parses the claims: a JSON object, with the checks of [`keywright_json::check`].
    pub(super) fn claims(&self) -> Result<Claims, TokenError> {
        decode_object(self.payload)
            .map(Claims)
            .ok_or(TokenError::Invalid(
                "payload is not an object, or has duplicate claims",
            ))
    }
}

/// Rejects headers that change the meaning of the token: critical extensions (`crit`), nested tokens (`cty`), and token types for
/// other uses, such as proofs or logout tokens (`typ`; RFC 8725, section 3.11).
fn refuse_extensions(header: &Map<String, Value>) -> Result<(), TokenError> {
    if header.contains_key("crit") {
        return Err(TokenError::Invalid("critical extensions are not supported"));
    }
    if header.contains_key("cty") {
        return Err(TokenError::Invalid("nested tokens are not supported"));
    }
    let Some(token_type) = header.get("typ") else {
        return Ok(());
    };
    let is_known = token_type.as_str().is_some_and(|token_type| {
        TYPES
            .iter()
            .any(|known| token_type.eq_ignore_ascii_case(known))
    });
    if is_known {
        Ok(())
    } else {
        Err(TokenError::Invalid("wrong token type"))
    }
}

fn decode_object(part: &str) -> Option<Map<String, Value>> {
    keywright_json::read_bytes(&URL_SAFE_NO_PAD.decode(part).ok()?).ok()
}

/// The accepted token types (RFC 7519, section 5.1; RFC 9068, section 2.1); not case-sensitive.
const TYPES: [&str; 4] = ["JWT", "application/jwt", "at+jwt", "application/at+jwt"];

/// The claims of a token with a valid signature.
pub(super) struct Claims(Map<String, Value>);

/// The verified properties of a token. After this verification, its validity depends only on the time.
#[derive(Clone, Debug)]
pub(super) struct CheckedToken {
    identity: Identity,
    expires_at_seconds: i64,
    not_before_seconds: Option<i64>,
    has_scopes: bool,
}

impl Claims {
    /// Checks the claims, but does not compare times with the clock.
    pub(super) fn check(
        &self,
        issuer: &str,
        rules: &TokenRules,
    ) -> Result<CheckedToken, TokenError> {
        if issuer.is_empty() || self.text("iss")? != Some(issuer) {
            return Err(TokenError::Invalid("wrong issuer"));
        }
        if let Some(audience) = &rules.audience
            && !self.is_for(audience)
        {
            return Err(TokenError::Invalid("wrong audience"));
        }
        let expires_at_seconds = self.time("exp")?;
        Ok(CheckedToken {
            expires_at_seconds: expires_at_seconds.ok_or(TokenError::Invalid("no expiry"))?,
            not_before_seconds: self.time("nbf")?,
            has_scopes: self.has_scopes(rules)?,
            identity: Identity::of_token(self.actor(rules)?, self.name(&rules.claims.subject)?),
        })
    }

    /// Checks the claims of an ID token (OIDC Core 1.0, section 3.1.3.7).
    pub(super) fn check_id_token(
        &self,
        issuer: &str,
        client_id: &str,
        nonce: &str,
        now: DateTime<Utc>,
    ) -> Result<(), TokenError> {
        if issuer.is_empty() || self.text("iss")? != Some(issuer) {
            return Err(TokenError::Invalid("wrong issuer"));
        }
        let is_authorized = self.text("azp")?.is_none_or(|party| party == client_id);
        if !self.is_for(client_id) || !is_authorized {
            return Err(TokenError::Invalid("wrong audience"));
        }
        let expires_at_seconds = self.time("exp")?.ok_or(TokenError::Invalid("no expiry"))?;
        if now.timestamp().saturating_sub(expires_at_seconds) > SKEW_SECONDS_MAX {
            return Err(TokenError::Invalid("it has expired"));
        }
        if self.text("nonce")? != Some(nonce) {
            return Err(TokenError::Invalid("wrong nonce"));
        }
        Ok(())
    }

    /// Returns whether the token's audience includes this one (RFC 7519, section 4.1.3).
    fn is_for(&self, audience: &str) -> bool {
        match self.0.get("aud") {
            Some(Value::String(only)) => only == audience,
            Some(Value::Array(several)) => {
                several.iter().all(Value::is_string)
                    && several.iter().any(|one| one.as_str() == Some(audience))
            }
            _ => false,
        }
    }

    fn has_scopes(&self, rules: &TokenRules) -> Result<bool, TokenError> {
        let malformed = || TokenError::Invalid("scopes are not in the configured format");
        let scopes: Vec<&str> = match (self.0.get(&rules.claims.scope), rules.claims.scope_form) {
            (None, _) => Vec::new(),
            (Some(Value::Array(scopes)), ScopeForm::Array) => scopes
                .iter()
                .map(Value::as_str)
                .collect::<Option<_>>()
                .ok_or_else(malformed)?,
            (Some(Value::String(scopes)), ScopeForm::Text) => scopes.split(' ').collect(),
            (Some(_), _) => return Err(malformed()),
        };
        let is_present = |required: &String| scopes.contains(&required.as_str());
        Ok(rules.scopes_required.iter().all(is_present))
    }

    fn actor(&self, rules: &TokenRules) -> Result<Actor, TokenError> {
        let claims = &rules.claims;
        let bearer = self.bearer(claims)?;
        let id = |claim| Ok(self.name(claim)?.unwrap_or_default());
        let actor = match bearer {
            Bearer::Client => Actor::client(id(&claims.client_id)?),
            Bearer::User => Actor::user(id(&claims.user_id)?),
        };
        actor.map_err(|_| TokenError::Invalid("invalid actor"))
    }

    /// Determines whether the token is a client's or a user's.
    ///
    /// With `client_subjects`, a token whose subject is its client is accepted only if the client is listed, because a user
    /// may have the same id as a client (RFC 9700, section 4.15).
    fn bearer(&self, claims: &ClaimSettings) -> Result<Bearer, TokenError> {
        if claims.client_subjects.is_empty() {
            return claims
                .grant_type
                .bearer(self.text(&claims.grant_type.claim)?)
                .ok_or(TokenError::Invalid(
                    "grant type is neither a client's nor a user's",
                ));
        }
        let client_id = self.text(&claims.client_id)?.unwrap_or_default();
        if self.text(&claims.subject)? != Some(client_id) {
            return Ok(Bearer::User);
        }
        if claims.is_client_subject(client_id) {
            return Ok(Bearer::Client);
        }
        Err(TokenError::Invalid(
            "subject is a client that is not in client_subjects",
        ))
    }

    /// Returns a claim that contains a name. Its length is limited, because it is cached.
    fn name(&self, claim: &str) -> Result<Option<&str>, TokenError> {
        match self.text(claim)? {
            Some(name) if name.chars().count() > NAME_CHARACTERS_MAX => {
                Err(TokenError::Invalid("a name is too long"))
            }
            name => Ok(name),
        }
    }

    fn text(&self, claim: &str) -> Result<Option<&str>, TokenError> {
        match self.0.get(claim) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(TokenError::Invalid("a claim must be a string")),
        }
    }

    /// Returns a time, in whole seconds since 1970. RFC 7519 also allows fractions, but no known provider sends them, and readers
    /// could round them differently.
    fn time(&self, claim: &str) -> Result<Option<i64>, TokenError> {
        let Some(value) = self.0.get(claim) else {
            return Ok(None);
        };
        match value.as_i64() {
            Some(seconds) if seconds <= TIME_SECONDS_MAX => Ok(Some(seconds)),
            _ => Err(TokenError::Invalid("a time claim is not a number")),
        }
    }
}

impl CheckedToken {
    pub(super) fn identity_at(
        &self,
        now: DateTime<Utc>,
        rules: &TokenRules,
    ) -> Result<Identity, TokenError> {
        let now_seconds = now.timestamp();
        if self
            .not_before_seconds
            .is_some_and(|not_before| not_before.saturating_sub(now_seconds) > SKEW_SECONDS_MAX)
        {
            return Err(TokenError::Invalid("not valid yet"));
        }
        if self.is_expired_at(now) {
            return Err(TokenError::Expired);
        }
        if !self.has_scopes {
            return Err(TokenError::ScopesMissing(Arc::clone(&rules.scopes_text)));
        }
        Ok(self.identity.clone())
    }

    pub(super) fn is_expired_at(&self, now: DateTime<Utc>) -> bool {
        now.timestamp().saturating_sub(self.expires_at_seconds) > SKEW_SECONDS_MAX
    }
}

/// Maximum difference between the clocks of the identity provider and this server.
const SKEW_SECONDS_MAX: i64 = 60;

/// The latest accepted time, the end of the year 9999; later times are errors.
const TIME_SECONDS_MAX: i64 = 253_402_300_799;

/// Maximum length of the name of a client, user or subject, in characters (OIDC Core 1.0, section 2, for `sub`).
const NAME_CHARACTERS_MAX: usize = 255;
