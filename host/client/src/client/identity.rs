//! What an identity provider is asked for: tokens, and that they end (OAuth 2.0, RFC 6749, in the form that clients of this
//! API speak with UAA).

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use reqwest::Method;
use serde::Deserialize;

use super::{
    Call, Error, Loss, Refusal,
    transport::{self, Answer, Transport},
    wait::Waits,
};
use crate::Secret;

/// What a token is given for.
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
    /// A user acts through the command line.
    Password {
        /// The user's name.
        username: String,
        /// The user's password.
        password: Secret,
    },
    /// A login goes on that was begun by a password.
    RefreshToken(Secret),
}

/// What an identity provider gave.
#[derive(Clone, Debug, Deserialize)]
#[non_exhaustive]
pub struct Tokens {
    /// What each request shows.
    pub access_token: Secret,
    /// What the access token can be renewed by.
    #[serde(default)]
    pub refresh_token: Option<Secret>,
}

impl Tokens {
    /// Tokens that are there already.
    #[must_use]
    pub fn new(access_token: Secret, refresh_token: Option<Secret>) -> Self {
        Self {
            access_token,
            refresh_token,
        }
    }

    /// The id by which the login can be ended.
    fn id(&self) -> Option<String> {
        #[derive(Deserialize)]
        struct Claims {
            jti: String,
        }
        let claims = self.access_token.expose().split('.').nth(1)?;
        let claims = URL_SAFE_NO_PAD.decode(claims).ok()?;
        let claims: Claims = keywright_json::read_bytes(&claims).ok()?;
        // It becomes a part of an address.
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
        (!claims.jti.is_empty() && claims.jti.bytes().all(is_plain)).then_some(claims.jti)
    }
}

/// The identity provider that a server trusts.
pub(super) struct IdentityProvider<'a> {
    pub(super) transport: &'a Transport,
    pub(super) waits: &'a Waits,
}

impl IdentityProvider<'_> {
    /// Asks for tokens.
    pub(super) async fn tokens(&self, grant: &Grant) -> Result<Tokens, Error> {
        let form = form(grant);
        let url = format!("{}/oauth/token", self.url().await?);
        let send = || self.transport.post_form(&url, &form);
        let answer = self.answer(send).await?;
        keywright_json::read_bytes(&answer.body).map_err(Error::AnswerMalformed)
    }

    /// Ends a login.
    pub(super) async fn revoke(&self, tokens: &Tokens) -> Result<(), Error> {
        let id = tokens.id().ok_or(Error::TokenWithoutId)?;
        let url = format!("{}/oauth/token/revoke/{id}", self.url().await?);
        let send = || self.transport.delete(&url, &tokens.access_token);
        self.answer(send).await.map(|_| ())
    }

    /// Its address, once it has answered there.
    async fn url(&self) -> Result<String, Error> {
        let call = Call::new(Method::GET, "/info").without_login();
        let mut retries = 0;
        let answer = loop {
            let (error, retry_after) = match self.transport.send(&call, None).await {
                Ok(answer) if !answer.is_unavailable() => break answer,
                Ok(answer) => {
                    let retry_after = answer.retry_after;
                    (Error::from(Refusal::from(answer)), retry_after)
                }
                Err(error) if call.may_be_sent_again_after(&error) => (error, None),
                Err(error) => return Err(error),
            };
            if !self.waits.wait(retries, retry_after).await {
                return Err(error);
            }
            retries += 1;
        };
        if !answer.is_success() {
            return Err(Error::from(Refusal::from(answer)));
        }
        let info: Info =
            keywright_json::read_bytes(&answer.body).map_err(Error::AnswerMalformed)?;
        if info.auth_server.url.is_empty() {
            return Err(Error::NoIdentityProvider);
        }
        let url = transport::address(&info.auth_server.url)?;
        let own_info = format!("{url}/info");
        self.answer(|| self.transport.get(&own_info)).await?;
        Ok(url)
    }

    /// What the provider answers, when it does what it is asked for.
    ///
    /// It is asked again, a bounded number of times, while it can't be reached or fails (5xx): a login that is done twice
    /// gives another token, and one that is ended twice is ended.
    async fn answer<Sent: Future<Output = Result<Answer, Error>>>(
        &self,
        send: impl Fn() -> Sent,
    ) -> Result<Answer, Error> {
        let mut retries = 0;
        loop {
            let (error, retry_after) = match send().await {
                Ok(answer) if answer.is_success() => return Ok(answer),
                Ok(answer) if answer.status >= 500 => {
                    let retry_after = answer.retry_after;
                    (Error::Refused(answer.into()), retry_after)
                }
                Ok(answer) => return Err(Error::LoginRefused(answer.into())),
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

fn form(grant: &Grant) -> Vec<(&str, &str)> {
    let mut form = vec![("response_type", "token")];
    match grant {
        Grant::ClientCredentials {
            client_id,
            client_secret,
        } => form.extend([
            ("grant_type", "client_credentials"),
            ("client_id", client_id.as_str()),
            ("client_secret", client_secret.expose()),
        ]),
        Grant::Password { username, password } => form.extend([
            ("grant_type", "password"),
            ("client_id", COMMAND_LINE),
            ("client_secret", ""),
            ("username", username.as_str()),
            ("password", password.expose()),
        ]),
        Grant::RefreshToken(refresh_token) => form.extend([
            ("grant_type", "refresh_token"),
            ("client_id", COMMAND_LINE),
            ("client_secret", ""),
            ("refresh_token", refresh_token.expose()),
        ]),
    }
    form
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

/// The client as which users log in through a command line. It has no secret.
const COMMAND_LINE: &str = "credhub_cli";

#[cfg(test)]
mod tests {
    use super::*;

    fn token(claims: &str) -> Tokens {
        let claims = URL_SAFE_NO_PAD.encode(claims);
        Tokens::new(Secret::new(format!("e30.{claims}.c2ln")), None)
    }

    #[test]
    fn the_id_of_a_token_is_one_that_an_address_can_hold() {
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
