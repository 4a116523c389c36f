//! What a token must say to be good here, and in which claims it says it.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a token must say, beyond being signed by the trusted issuer and being valid now.
#[derive(Clone, Debug)]
pub struct TokenRules {
    pub(super) scopes_required: Vec<String>,
    pub(super) audience: Option<String>,
    pub(super) claims: ClaimSettings,
    /// The required scopes as a challenge names them (RFC 6750, section 3).
    pub(super) scopes_text: Arc<str>,
}

/// In which claims a token says what is read of it. The defaults are UAA's.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ClaimSettings {
    /// The claim with the scopes.
    pub scope: String,
    /// How scopes are written in it. The other way is refused.
    pub scope_form: ScopeForm,
    /// The claim with the id of the client that the token was given to.
    pub client_id: String,
    /// The claim with the id of the user whom the token was given for; one that never changes.
    pub user_id: String,
    /// The claim that names client or user for people who read the audit trail.
    pub subject: String,
    /// What tells the tokens of clients from those of users.
    pub grant_type: GrantTypeSettings,
    /// For providers whose tokens of clients name the client in both `client_id` and `subject` and have no claim for
    /// `grant_type` (RFC 9068): the ids of these clients. A token is a client's if both claims have the same id and it is listed
    /// here, refused if it is not listed, and a user's if the claims differ. List no client through which users log in. `*`
    /// stands for every client; use it only if no user's id can ever equal a client's. If empty, `grant_type` applies.
    pub client_subjects: Vec<String>,
}

/// How scopes are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ScopeForm {
    /// As an array of texts, as UAA has it.
    #[default]
    Array,
    /// As one text with blanks between the scopes (RFC 8693, section 4.2; RFC 9068, section 2.2.3).
    Text,
}

/// What tells the tokens of clients, which act for themselves, from those of users.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct GrantTypeSettings {
    /// The claim that tells.
    pub claim: String,
    /// What it says in tokens of clients; `*` is any text that is not among the other ones.
    pub of_clients: Vec<String>,
    /// What it says in tokens of users; `*` is any text that is not among the other ones.
    pub of_users: Vec<String>,
    /// Whose a token is that does not have the claim.
    pub when_absent: WhenAbsent,
}

/// Whose a token is that does not say it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum WhenAbsent {
    /// Nobody's: it is refused.
    #[default]
    Refused,
    /// A client's.
    Client,
    /// A user's.
    User,
}

/// Whose a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bearer {
    /// A client's that acts for itself.
    Client,
    /// A user's.
    User,
}

/// Rules by which no token could be judged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenRulesRefused {
    /// A claim has no name.
    #[error("authentication.claims.{0} must name a claim")]
    ClaimUnnamed(&'static str),
    /// A grant type is a client's and a user's.
    #[error(
        "authentication.claims.grant_type has {0:?} both in of_clients and in of_users, so nobody could tell whose a \
         token is"
    )]
    GrantTypeAmbiguous(String),
    /// No grant type is anybody's.
    #[error("authentication.claims.grant_type names nobody whose a token could be")]
    GrantTypesMissing,
    /// Two ways to tell clients from users are configured.
    #[error(
        "authentication.claims.client_subjects and authentication.claims.grant_type exclude each other: remove one of them"
    )]
    GrantTypeUnused,
    /// Every token of the issuer would be good.
    #[error(
        "without authentication.scopes_required there must be an authentication.audience: otherwise every token that \
         the provider gives, for whatever service, would be good here"
    )]
    NothingRequired,
    /// The audience is empty.
    #[error("authentication.audience must not be empty")]
    AudienceEmpty,
    /// A scope is none.
    #[error(
        "{0:?} in authentication.scopes_required is no scope: one has no blanks, quotes or backslashes, and is ASCII"
    )]
    ScopeMalformed(String),
}

impl TokenRules {
    /// The scopes that are required where nothing else is configured.
    pub const SCOPES_REQUIRED: [&str; 2] = ["credhub.read", "credhub.write"];

    /// Puts rules together.
    ///
    /// # Errors
    /// When no token could be judged by them.
    pub fn new(
        scopes_required: Vec<String>,
        audience: Option<String>,
        claims: ClaimSettings,
    ) -> Result<Self, TokenRulesRefused> {
        if let Some(scope) = scopes_required.iter().find(|scope| !is_scope(scope)) {
            return Err(TokenRulesRefused::ScopeMalformed(scope.clone()));
        }
        if audience.as_deref() == Some("") {
            return Err(TokenRulesRefused::AudienceEmpty);
        }
        if scopes_required.is_empty() && audience.is_none() {
            return Err(TokenRulesRefused::NothingRequired);
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
    /// Whether tokens of this client may name it as their subject.
    pub(super) fn is_client_subject(&self, client_id: &str) -> bool {
        let mut listed = self.client_subjects.iter();
        listed.any(|listed| listed == client_id || listed == ANY)
    }

    fn refuse_unusable(&self) -> Result<(), TokenRulesRefused> {
        for (member, claim) in [
            ("scope", &self.scope),
            ("client_id", &self.client_id),
            ("user_id", &self.user_id),
            ("subject", &self.subject),
            ("grant_type.claim", &self.grant_type.claim),
        ] {
            if claim.is_empty() {
                return Err(TokenRulesRefused::ClaimUnnamed(member));
            }
        }
        let has_subjects = !self.client_subjects.is_empty();
        if has_subjects && self.grant_type != GrantTypeSettings::default() {
            return Err(TokenRulesRefused::GrantTypeUnused);
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
    /// Whose a token is that has this grant type, or none.
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

    fn refuse_unusable(&self) -> Result<(), TokenRulesRefused> {
        if let Some(ambiguous) = self
            .of_clients
            .iter()
            .find(|grant_type| self.of_users.contains(grant_type))
        {
            return Err(TokenRulesRefused::GrantTypeAmbiguous(ambiguous.clone()));
        }
        let names_nobody = self.of_clients.is_empty() && self.of_users.is_empty();
        if names_nobody && self.when_absent == WhenAbsent::Refused {
            return Err(TokenRulesRefused::GrantTypesMissing);
        }
        Ok(())
    }
}

/// Whether a text is a scope (RFC 6749, section 3.3).
fn is_scope(text: &str) -> bool {
    let is_scope_byte = |byte: u8| byte.is_ascii_graphic() && byte != b'"' && byte != b'\\';
    !text.is_empty() && text.bytes().all(is_scope_byte)
}

/// Stands for any grant type, or any client, that is not named.
const ANY: &str = "*";

#[cfg(test)]
mod tests {
    use super::*;

    fn grant_types(
        of_clients: &[&str],
        of_users: &[&str],
        when_absent: WhenAbsent,
    ) -> GrantTypeSettings {
        let owned = |list: &[&str]| list.iter().map(|text| (*text).to_owned()).collect();
        GrantTypeSettings {
            claim: "gty".to_owned(),
            of_clients: owned(of_clients),
            of_users: owned(of_users),
            when_absent,
        }
    }

    #[test]
    fn a_grant_type_tells_whose_a_token_is() {
        let (client, user) = (Some(Bearer::Client), Some(Bearer::User));
        for (settings, grant_type, bearer) in [
            (
                GrantTypeSettings::default(),
                Some("client_credentials"),
                client,
            ),
            (GrantTypeSettings::default(), Some("password"), user),
            (GrantTypeSettings::default(), Some("Password"), None),
            (GrantTypeSettings::default(), Some("*"), None),
            (GrantTypeSettings::default(), None, None),
            (grant_types(&["a"], &[], WhenAbsent::User), None, user),
            (grant_types(&[], &["a"], WhenAbsent::Client), None, client),
            (
                grant_types(&["*"], &[], WhenAbsent::User),
                Some("x"),
                client,
            ),
            (
                grant_types(&["*"], &["x"], WhenAbsent::User),
                Some("x"),
                user,
            ),
            (
                grant_types(&["x"], &["*"], WhenAbsent::Refused),
                Some("x"),
                client,
            ),
            (
                grant_types(&["x"], &["*"], WhenAbsent::Refused),
                Some(""),
                user,
            ),
        ] {
            assert_eq!(
                settings.bearer(grant_type),
                bearer,
                "{settings:?} {grant_type:?}"
            );
        }
    }

    #[test]
    fn rules_by_which_no_token_could_be_judged_are_refused() {
        let rules = |scopes: &[&str], audience: Option<&str>, claims| {
            let scopes = scopes.iter().map(|scope| (*scope).to_owned()).collect();
            TokenRules::new(scopes, audience.map(str::to_owned), claims).err()
        };
        let defaults = ClaimSettings::default;
        assert_eq!(rules(&["a"], None, defaults()), None);
        assert_eq!(rules(&[], Some("a"), defaults()), None);
        assert_eq!(
            rules(&[], None, defaults()),
            Some(TokenRulesRefused::NothingRequired)
        );
        assert_eq!(
            rules(&["a"], Some(""), defaults()),
            Some(TokenRulesRefused::AudienceEmpty)
        );
        for scope in ["", "a b", "a\"", "a\\", "ä", "a\n"] {
            let refused = TokenRulesRefused::ScopeMalformed(scope.to_owned());
            assert_eq!(rules(&["a", scope], None, defaults()), Some(refused));
        }
        let both = ClaimSettings {
            client_subjects: vec!["a".to_owned()],
            grant_type: grant_types(&["a"], &[], WhenAbsent::Refused),
            ..defaults()
        };
        let refused = Some(TokenRulesRefused::GrantTypeUnused);
        assert_eq!(rules(&["a"], None, both), refused);
        let unnamed = ClaimSettings {
            user_id: String::new(),
            ..defaults()
        };
        assert_eq!(
            rules(&["a"], None, unnamed),
            Some(TokenRulesRefused::ClaimUnnamed("user_id"))
        );
        for (of_clients, of_users, refused) in [
            (
                &["*"][..],
                &["*"][..],
                TokenRulesRefused::GrantTypeAmbiguous("*".to_owned()),
            ),
            (
                &["a"],
                &["b", "a"],
                TokenRulesRefused::GrantTypeAmbiguous("a".to_owned()),
            ),
            (&[], &[], TokenRulesRefused::GrantTypesMissing),
        ] {
            let grant_type = grant_types(of_clients, of_users, WhenAbsent::Refused);
            let claims = ClaimSettings {
                grant_type,
                ..defaults()
            };
            assert_eq!(rules(&["a"], None, claims), Some(refused));
        }
    }
}
