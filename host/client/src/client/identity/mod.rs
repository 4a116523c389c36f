//! Requests and revokes tokens of an identity provider (OAuth 2.0, RFC 6749).

mod browser;
mod device;
mod discovery;
mod redirect;
mod token_request;

use std::time::Duration;

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use reqwest::Method;
use serde::Deserialize;

use self::{discovery::Revocation, token_request::ClientIdentity};
use super::{
    Call, Error, Loss, Refusal,
    transport::{self, Response, Transport},
    wait::Waits,
};
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
pub(super) type UserActions = Box<dyn Fn(&UserAction) + Send + Sync>;

/// The tokens of a login.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Tokens {
    /// The token that each request presents.
    pub access_token: Secret,
    /// The token that renews the access token.
    pub refresh_token: Option<Secret>,
}

impl LoginOptions {
    /// Returns the parameters of the first request of a login.
    fn requested(&self) -> Vec<(&str, &str)> {
        let scope = self.scope.as_deref().map(|scope| ("scope", scope));
        let audience = self.audience.as_deref();
        let audience = audience.map(|audience| ("audience", audience));
        let parameters = scope.into_iter().chain(audience);
        parameters.chain(self.resource()).collect()
    }

    /// Returns the parameter of all requests of a login (RFC 8707, section 2.2).
    fn resource(&self) -> Vec<(&str, &str)> {
        let resource = self.resource.as_deref();
        resource
            .map(|resource| ("resource", resource))
            .into_iter()
            .collect()
    }
}

impl Tokens {
    /// Tokens that were issued before.
    #[must_use]
    pub fn new(access_token: Secret, refresh_token: Option<Secret>) -> Self {
        Self {
            access_token,
            refresh_token,
        }
    }

    /// Returns the id for the revocation of the login.
    fn id(&self) -> Option<String> {
        #[derive(Deserialize)]
        struct Claims {
            jti: String,
        }
        let claims = self.access_token.expose().split('.').nth(1)?;
        let claims = URL_SAFE_NO_PAD.decode(claims).ok()?;
        let claims: Claims = keywright_json::read_bytes(&claims).ok()?;
        // The id is inserted into a URL.
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
        (!claims.jti.is_empty() && claims.jti.bytes().all(is_plain)).then_some(claims.jti)
    }
}

/// The identity provider that a server trusts.
pub(super) struct IdentityProvider<'a> {
    pub(super) transport: &'a Transport,
    pub(super) waits: &'a Waits,
    pub(super) options: &'a LoginOptions,
    pub(super) user_actions: Option<&'a UserActions>,
}

impl IdentityProvider<'_> {
    /// Requests tokens.
    pub(super) async fn tokens(&self, grant: &Grant) -> Result<Tokens, Error> {
        let endpoints = self.endpoints().await?;
        let (client, form) = match grant {
            Grant::ClientCredentials {
                client_id,
                client_secret,
            } => {
                let client = ClientIdentity::confidential(client_id, client_secret);
                let mut form = vec![("grant_type", "client_credentials")];
                form.extend(self.options.requested());
                (client, form)
            }
            Grant::Password { username, password } => {
                let mut form = vec![
                    ("grant_type", "password"),
                    ("username", username),
                    ("password", password.expose()),
                ];
                form.extend(self.options.requested());
                (self.public_client(), form)
            }
            Grant::RefreshToken(refresh_token) => {
                let mut form = vec![
                    ("grant_type", "refresh_token"),
                    ("refresh_token", refresh_token.expose()),
                ];
                form.extend(self.options.resource());
                (self.public_client(), form)
            }
            Grant::DeviceCode => return self.tokens_by_device(&endpoints).await,
            Grant::AuthorizationCode => return self.tokens_by_browser(&endpoints).await,
        };
        self.request_tokens(&endpoints, client, form).await
    }

    /// Revokes a login, with the client's secret if the grant has it.
    pub(super) async fn revoke(&self, tokens: &Tokens, grant: Option<&Grant>) -> Result<(), Error> {
        let endpoints = self.endpoints().await?;
        let revoked = match &endpoints.revocation {
            Revocation::ByTokenId(url) => {
                let id = tokens.id().ok_or(Error::TokenWithoutId)?;
                let url = format!("{url}/{id}");
                let send = || self.transport.delete(&url, &tokens.access_token);
                self.send(send).await
            }
            Revocation::ByToken(url) => {
                let client = match grant {
                    Some(Grant::ClientCredentials {
                        client_id,
                        client_secret,
                    }) => ClientIdentity::confidential(client_id, client_secret),
                    _ if self.options.is_of_client => return Err(Error::ClientSecretMissing),
                    _ => self.public_client(),
                };
                let (token, hint) = match &tokens.refresh_token {
                    Some(refresh_token) => (refresh_token, "refresh_token"),
                    None => (&tokens.access_token, "access_token"),
                };
                let form = [("token", token.expose()), ("token_type_hint", hint)];
                self.post(&endpoints, url, client, &form).await
            }
            Revocation::Unsupported => Err(Error::GrantUnsupported("revocation_endpoint")),
        };
        match revoked {
            Err(Error::LoginRefused(refusal)) => Err(Error::RevocationRefused(refusal)),
            revoked => revoked.map(|_| ()),
        }
    }

    /// The client through which users log in. It has no secret.
    fn public_client(&self) -> ClientIdentity<'_> {
        ClientIdentity {
            id: self.options.client_id.as_deref().unwrap_or(COMMAND_LINE),
            secret: None,
        }
    }

    /// Reports a step that the user must take.
    fn report(&self, action: &UserAction) {
        if let Some(user_actions) = self.user_actions {
            user_actions(action);
        }
    }

    /// Returns the provider's address, as published by the server.
    async fn url(&self) -> Result<String, Error> {
        let call = Call::new(Method::GET, "/info").without_login();
        let mut retries = 0;
        let response = loop {
            let (error, retry_after) = match self.transport.send(&call, None).await {
                Ok(response) if !response.is_unavailable() => break response,
                Ok(response) => {
                    let retry_after = response.retry_after;
                    (Error::from(Refusal::from(response)), retry_after)
                }
                Err(error) if call.may_be_sent_again_after(&error) => (error, None),
                Err(error) => return Err(error),
            };
            if !self.waits.wait(retries, retry_after).await {
                return Err(error);
            }
            retries += 1;
        };
        if !response.is_success() {
            return Err(Error::from(Refusal::from(response)));
        }
        let info: Info =
            keywright_json::read_bytes(&response.body).map_err(Error::AnswerMalformed)?;
        if info.auth_server.url.is_empty() {
            return Err(Error::NoIdentityProvider);
        }
        transport::address(&info.auth_server.url)
    }

    /// Sends a request and returns the provider's response if it succeeds.
    ///
    /// Retries a limited number of times while the provider is unreachable or fails (5xx). That is safe: a repeated login returns
    /// another token, and a repeated revocation changes nothing.
    async fn send<Sent: Future<Output = Result<Response, Error>>>(
        &self,
        send: impl Fn() -> Sent,
    ) -> Result<Response, Error> {
        let mut retries = 0;
        loop {
            let (error, retry_after) = match send().await {
                Ok(response) if response.is_success() => return Ok(response),
                Ok(response) if response.status >= 500 => {
                    let retry_after = response.retry_after;
                    (Error::Refused(response.into()), retry_after)
                }
                Ok(response) => return Err(Error::LoginRefused(response.into())),
                Err(error @ Error::Unreachable { loss, .. }) if loss != Loss::Lasting => {
                    (error, None)
                }
                Err(error @ Error::Unreachable { .. }) => {
                    return Err(Error::ProviderUnavailable(Box::new(error)));
                }
                Err(error) => return Err(error),
            };
            if !self.waits.wait(retries, retry_after).await {
                return Err(Error::ProviderUnavailable(Box::new(error)));
            }
            retries += 1;
        }
    }
}

#[derive(Deserialize)]
struct Info {
    #[serde(rename = "auth-server")]
    auth_server: AuthServer,
}

#[derive(Deserialize)]
struct AuthServer {
    url: String,
}

/// The default client through which users log in: UAA's client for command lines.
const COMMAND_LINE: &str = "credhub_cli";

#[cfg(test)]
mod tests {
    use super::*;

    fn token(claims: &str) -> Tokens {
        let claims = URL_SAFE_NO_PAD.encode(claims);
        Tokens::new(Secret::new(format!("e30.{claims}.c2ln")), None)
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
