//! The parts of a login: a grant, its parameters, the steps of the user, and the tokens.

use std::time::Duration;

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use serde_json::Value;

use crate::Secret;

/// The grant by which tokens are requested.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Grant {
    /// A client acts for itself.
    ClientCredentials {
        /// The client's id.
        client_id: String,
        /// Its secret.
        client_secret: Secret,
    },
    /// A user logs in with a password.
    Password {
        /// The user's name.
        username: String,
        /// The user's password.
        password: Secret,
    },
    /// A refresh token of an earlier login.
    RefreshToken(Secret),
    /// A user enters a code on any device (RFC 8628). [`UserAction::EnterCode`] has the code.
    DeviceCode,
    /// A user logs in with a browser on this machine (RFC 8252). [`UserAction::OpenPage`] has the page.
    AuthorizationCode,
}

/// The parameters of a login other than its grant. All are optional.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LoginOptions {
    /// The public client through which users log in; `credhub_cli` by default.
    pub client_id: Option<String>,
    /// The scopes, separated by spaces.
    pub scope: Option<String>,
    /// The audience, a parameter of some providers.
    pub audience: Option<String>,
    /// The resource (RFC 8707).
    pub resource: Option<String>,
    /// Whether the tokens belong to a client that acts for itself. Revoking them can require its secret.
    pub is_of_client: bool,
}

/// A step that a user must take to complete a login.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum UserAction {
    /// Open a page on any device and enter a code there.
    EnterCode {
        /// The page.
        page: String,
        /// The page that includes the code, if the provider has one.
        page_with_code: Option<String>,
        /// The code.
        code: String,
        /// How long the code is valid.
        expires_in: Duration,
    },
    /// Open a page in a browser on this machine.
    OpenPage {
        /// The page.
        page: String,
    },
}

/// A receiver of the steps that a user must take.
pub(super) type OnUserAction = Box<dyn Fn(&UserAction) + Send + Sync>;

/// The tokens of a login.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Tokens {
    /// The token that each request presents.
    pub access_token: Secret,
    /// The token that renews the access token.
    pub refresh_token: Option<Secret>,
    /// The address of the identity provider that issued them, if known. They are sent to no other provider.
    pub issued_by: Option<String>,
}

impl LoginOptions {
    /// Returns the parameters of the first request of a login.
    pub(super) fn initial_parameters(&self) -> Vec<(&str, &str)> {
        let scope = self.scope.as_deref().map(|scope| ("scope", scope));
        let audience = self.audience.as_deref();
        let audience = audience.map(|audience| ("audience", audience));
        let parameters = scope.into_iter().chain(audience);
        parameters.chain(self.resource_parameter()).collect()
    }

    /// Returns the parameter of all requests of a login (RFC 8707, section 2.2).
    pub(super) fn resource_parameter(&self) -> Vec<(&str, &str)> {
        let resource = self.resource.as_deref();
        resource
            .map(|resource| ("resource", resource))
            .into_iter()
            .collect()
    }
}

impl Tokens {
    /// Creates the tokens of an earlier login.
    #[must_use]
    pub fn new(access_token: Secret, refresh_token: Option<Secret>) -> Self {
        Self {
            access_token,
            refresh_token,
            issued_by: None,
        }
    }

    /// Returns the id for the revocation of the login.
    pub(super) fn id(&self) -> Option<String> {
        let id = self.claim("jti")?;
        // The id is inserted into a URL.
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
        (!id.is_empty() && id.bytes().all(is_plain)).then_some(id)
    }

    /// Returns the user's name and id, or the client's id, from the access token. Several users may have one name.
    pub(crate) fn subject(&self) -> Option<String> {
        let mut names = ["user_name", "preferred_username"].into_iter();
        let name = names.find_map(|name| self.claim(name));
        match (name, self.claim("sub")) {
            (Some(name), Some(id)) if name != id => Some(format!("{name} ({id})")),
            (name, id) => name.or(id).or_else(|| self.claim("client_id")),
        }
    }

    /// Returns a claim of the access token that is a string. `None` if the token is opaque.
    fn claim(&self, name: &str) -> Option<String> {
        let claims = self.access_token.expose().split('.').nth(1)?;
        let claims = URL_SAFE_NO_PAD.decode(claims).ok()?;
        let claims: Value = keywright_json::read_bytes(&claims).ok()?;
        claims.get(name)?.as_str().map(str::to_owned)
    }
}

/// Returns whether a text can be sent as an access token.
pub(crate) fn is_access_token(text: &str) -> bool {
    (1..=TOKEN_BYTES_MAX).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic())
}

/// The longest access token, in bytes. Servers accept 16 KiB.
pub(crate) const TOKEN_BYTES_MAX: usize = 16 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    fn token(claims: &str) -> Tokens {
        let claims = URL_SAFE_NO_PAD.encode(claims);
        Tokens::new(Secret::new(format!("e30.{claims}.c2ln")), None)
    }

    #[test]
    fn the_subject_is_the_user_with_its_id_or_the_client() {
        for (claims, subject) in [
            (
                r#"{"client_id":"c","sub":"s","user_name":"u"}"#,
                Some("u (s)"),
            ),
            (r#"{"sub":"s","user_name":"s"}"#, Some("s")),
            (r#"{"client_id":"c","user_name":"u"}"#, Some("u")),
            (r#"{"client_id":"c","sub":"s"}"#, Some("s")),
            (r#"{"client_id":"c","sub":1}"#, Some("c")),
            ("opaque", None),
        ] {
            assert_eq!(token(claims).subject().as_deref(), subject, "{claims}");
        }
    }

    #[test]
    fn token_ids_that_are_unsafe_in_a_url_are_ignored() {
        for (claims, id) in [
            (r#"{"jti":"9c0e-_A"}"#, Some("9c0e-_A")),
            (r#"{"jti":""}"#, None),
            (r#"{"jti":"a/../b"}"#, None),
            (r#"{"jti":1}"#, None),
            ("{}", None),
        ] {
            assert_eq!(token(claims).id().as_deref(), id, "{claims}");
        }
        assert_eq!(
            Tokens::new(Secret::new("opaque".to_owned()), None).id(),
            None
        );
    }
}
