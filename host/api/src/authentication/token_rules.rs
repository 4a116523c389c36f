//! The requirements for tokens, and the claims to read from them.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
