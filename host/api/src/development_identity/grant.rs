//! Verifies token requests, and grants tokens.

use std::{sync::Arc, time::Duration};

use aws_lc_rs::{
    constant_time::verify_slices_are_equal,
    digest::{SHA256, digest},
};
use chrono::{DateTime, Utc};
use keywright_core::{Secret, ports::Clock};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strum::EnumString;
use uuid::Uuid;

use super::{
    codes::{Exchange, IssuedCodes},
    tokens::{
        AccessClaims, IdClaims, REFRESH_TOKEN, RefreshClaims, RevokedSessions, Session,
        SessionClaims, TOKEN, TokenSigner,
    },
};
use crate::{
    Limits,
    request::{QueryError, QueryParameters},
};

/// The settings of the identity provider.
pub struct DevelopmentIdentitySettings {
    /// The RSA private key that signs the tokens, in PEM (PKCS#8 or PKCS#1), of at least 2048 bits.
    pub signing_key_pem: Secret,
    /// The URL at which clients reach the provider, and the issuer in its tokens.
    pub issuer: String,
    /// The path at which the server mounts the provider, such as `/identity`: the path of the URL.
    pub path_prefix: String,
    /// The clients.
    pub clients: Vec<DevelopmentClient>,
    /// The users.
    pub users: Vec<DevelopmentUser>,
    /// The scopes that tokens may have.
    pub scopes: Vec<String>,
    /// The lifetime of access tokens.
    pub access_token_lifetime: Duration,
    /// The lifetime of refresh tokens.
    pub refresh_token_lifetime: Duration,
}

pub(super) struct Provider {
    pub(super) signer: TokenSigner,
    pub(super) settings: DevelopmentIdentitySettings,
    pub(super) revoked: RevokedSessions,
    pub(super) codes: IssuedCodes,
    pub(super) clock: Arc<dyn Clock>,
}

/// A client of the development identity provider.
#[derive(Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DevelopmentClient {
    /// The client's id.
    pub id: String,
    /// The client's secret; empty for a program on users' own machines. It protects only a development server.
    pub secret: String,
    /// The addresses to which the browser may be redirected after a login, such as the console's. Without them, users can't
    /// log in to this client in the browser.
    #[serde(default)]
    pub redirect_uris: Vec<String>,
}

/// A user of the development identity provider.
#[derive(Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DevelopmentUser {
    /// The user's id in tokens.
    pub id: Uuid,
    /// The name to log in with.
    pub name: String,
    /// The password to log in with. It protects only a development server.
    pub password: String,
}

#[derive(Clone, Copy, EnumString)]
#[strum(serialize_all = "snake_case")]
enum Grant {
    AuthorizationCode,
    ClientCredentials,
    Password,
    RefreshToken,
}

impl DevelopmentClient {
    fn may_use(&self, grant: Grant) -> bool {
        match grant {
            Grant::AuthorizationCode => !self.redirect_uris.is_empty(),
            Grant::ClientCredentials => !self.secret.is_empty(),
            Grant::Password | Grant::RefreshToken => true,
        }
    }
}

pub(super) struct ClientCredentials {
    pub(super) id: String,
    pub(super) secret: Secret,
}

#[derive(Serialize)]
pub(super) struct Granted {
    access_token: String,
    token_type: &'static str,
    expires_in: u64,
    scope: String,
    jti: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    refresh_token: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    id_token: Option<String>,
}

/// A token request failed (RFC 6749, section 5.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum TokenGrantError {
    #[error("unknown client or wrong secret")]
    ClientUnknown,
    #[error("the code is invalid, expired or already exchanged")]
    CodeWrong,
    #[error("wrong user name or password")]
    CredentialsWrong,
    #[error("the client may not use this grant type")]
    GrantNotAllowed,
    #[error("grant_type must be authorization_code, client_credentials, password or refresh_token")]
    GrantUnknown,
    #[error("the refresh token is invalid, expired or revoked")]
    RefreshTokenWrong,
    #[error(transparent)]
    ParameterInvalid(#[from] QueryError),
    #[error("the request body must be a form of the media type application/x-www-form-urlencoded")]
    RequestMalformed,
    #[error("none of the requested scopes is allowed")]
    ScopesNotAllowed,
    #[error("could not sign the token")]
    SigningFailed,
}

impl Provider {
    /// Issues a token, if the form and the client's credentials are valid.
    pub(super) fn grant(
        &self,
        form: &QueryParameters,
        credentials: &ClientCredentials,
    ) -> Result<Granted, TokenGrantError> {
        let client = self.client(credentials)?;
        let grant = form
            .required("grant_type")?
            .parse()
            .map_err(|_| TokenGrantError::GrantUnknown)?;
        if !client.may_use(grant) {
            return Err(TokenGrantError::GrantNotAllowed);
        }
        let requested = form.text("scope")?.unwrap_or_default();
        match grant {
            Grant::AuthorizationCode => self.exchange(form, client),
            Grant::ClientCredentials => {
                let scopes = requested_scopes(requested, &self.settings.scopes)?;
                self.access_token(client, None, &scopes, Session::begin())
            }
            Grant::Password => {
                let user = self.user(form)?;
                let scopes = requested_scopes(requested, &self.settings.scopes)?;
                let session = Session::begin();
                Ok(Granted {
                    refresh_token: Some(self.refresh_token(client, user, &scopes, session)?),
                    ..self.access_token(client, Some(user), &scopes, session)?
                })
            }
            Grant::RefreshToken => {
                let refresh_token = form.required("refresh_token")?;
                let (user, session, granted) = self.session(client, refresh_token)?;
                // A refresh may only narrow the scopes of its login (RFC 6749, section 6).
                let scopes = requested_scopes(requested, &granted)?;
                Ok(Granted {
                    refresh_token: Some(refresh_token.to_owned()),
                    ..self.access_token(client, Some(user), &scopes, session)?
                })
            }
        }
    }

    /// Issues the tokens of a login in the browser.
    fn exchange(
        &self,
        form: &QueryParameters,
        client: &DevelopmentClient,
    ) -> Result<Granted, TokenGrantError> {
        let now = self.clock.now();
        let code = form.required("code")?;
        let exchange = Exchange {
            client_id: &client.id,
            redirect_uri: form.text("redirect_uri")?.unwrap_or_default(),
            verifier: form.text("code_verifier")?.unwrap_or_default(),
        };
        let code = self.codes.take(code, &exchange, now.timestamp());
        let code = code.ok_or(TokenGrantError::CodeWrong)?;
        let mut users = self.settings.users.iter();
        let user = users.find(|user| user.id == code.user_id);
        let user = user.ok_or(TokenGrantError::CodeWrong)?;
        let scopes = requested_scopes(&code.scope, &self.settings.scopes)?;
        let session = Session::begin();
        let is_oidc = code.scope.split_whitespace().any(|scope| scope == "openid");
        let claims = IdClaims {
            sub: user.id.to_string(),
            aud: &client.id,
            iat: now.timestamp(),
            exp: seconds_after(now, self.settings.access_token_lifetime),
            nonce: code.nonce.as_deref(),
        };
        Ok(Granted {
            refresh_token: Some(self.refresh_token(client, user, &scopes, session)?),
            id_token: is_oidc.then(|| self.sign(TOKEN, &claims)).transpose()?,
            ..self.access_token(client, Some(user), &scopes, session)?
        })
    }

    /// Revokes the login of a token, which may have expired. Returns false if the token is not from this issuer, or the id belongs
    /// to another login.
    pub(super) fn revoke(&self, token: &str, token_id: &str) -> bool {
        let presented = self
            .signer
            .read::<SessionClaims>(token)
            .and_then(|token| Session::of_token_id(&token.claims.jti));
        let Some(session) =
            presented.filter(|presented| Session::of_token_id(token_id) == Some(*presented))
        else {
            return false;
        };
        let now = self.clock.now();
        let ends_at_seconds = seconds_after(now, self.settings.refresh_token_lifetime);
        self.revoked
            .revoke(session.0, ends_at_seconds, now.timestamp());
        true
    }

    fn client(
        &self,
        credentials: &ClientCredentials,
    ) -> Result<&DevelopmentClient, TokenGrantError> {
        self.settings
            .clients
            .iter()
            .find(|client| client.id == credentials.id)
            .filter(|client| is_same_secret(&client.secret, &credentials.secret))
            .ok_or(TokenGrantError::ClientUnknown)
    }

    pub(super) fn user(&self, form: &QueryParameters) -> Result<&DevelopmentUser, TokenGrantError> {
        let name = form.required("username")?;
        let password = Secret::new(form.required("password")?.to_owned());
        self.settings
            .users
            .iter()
            .find(|user| user.name == name)
            .filter(|user| is_same_secret(&user.password, &password))
            .ok_or(TokenGrantError::CredentialsWrong)
    }

    /// Returns the user, the login and the scopes of a refresh token.
    fn session(
        &self,
        client: &DevelopmentClient,
        refresh_token: &str,
    ) -> Result<(&DevelopmentUser, Session, Vec<String>), TokenGrantError> {
        let claims = self
            .signer
            .read_refresh_token(refresh_token, self.clock.now())
            .filter(|claims| claims.client_id == client.id)
            .ok_or(TokenGrantError::RefreshTokenWrong)?;
        let session = Session::of_token_id(&claims.jti)
            .filter(|session| !self.revoked.contains(session.0))
            .ok_or(TokenGrantError::RefreshTokenWrong)?;
        let user = self
            .settings
            .users
            .iter()
            .find(|user| user.id == claims.user_id)
            .ok_or(TokenGrantError::RefreshTokenWrong)?;
        Ok((user, session, claims.scope))
    }

    fn access_token(
        &self,
        client: &DevelopmentClient,
        user: Option<&DevelopmentUser>,
        scopes: &[String],
        session: Session,
    ) -> Result<Granted, TokenGrantError> {
        let now = self.clock.now();
        let user_id = user.map(|user| user.id.to_string());
        let claims = AccessClaims {
            jti: session.access_token_id(),
            sub: user_id.as_deref().unwrap_or(&client.id),
            iat: now.timestamp(),
            exp: seconds_after(now, self.settings.access_token_lifetime),
            aud: [&client.id],
            grant_type: if user.is_some() {
                "password"
            } else {
                "client_credentials"
            },
            client_id: &client.id,
            scope: scopes,
            user_id: user_id.as_deref(),
            user_name: user.map(|user| user.name.as_str()),
        };
        Ok(Granted {
            access_token: self.sign(TOKEN, &claims)?,
            token_type: "bearer",
            expires_in: self.settings.access_token_lifetime.as_secs(),
            scope: scopes.join(" "),
            jti: claims.jti,
            refresh_token: None,
            id_token: None,
        })
    }

    fn refresh_token(
        &self,
        client: &DevelopmentClient,
        user: &DevelopmentUser,
        scopes: &[String],
        session: Session,
    ) -> Result<String, TokenGrantError> {
        let now = self.clock.now();
        let claims = RefreshClaims {
            jti: session.refresh_token_id(),
            iat: now.timestamp(),
            exp: seconds_after(now, self.settings.refresh_token_lifetime),
            client_id: client.id.clone(),
            user_id: user.id,
            scope: scopes.to_vec(),
        };
        self.sign(REFRESH_TOKEN, &claims)
    }

    fn sign<T: Serialize>(&self, token_type: &str, claims: &T) -> Result<String, TokenGrantError> {
        self.signer.sign(token_type, claims).map_err(|error| {
            tracing::error!(error = %error, "could not sign a token");
            TokenGrantError::SigningFailed
        })
    }
}

/// Returns the requested scopes that are allowed, or all allowed scopes if the request names none.
fn requested_scopes(requested: &str, allowed: &[String]) -> Result<Vec<String>, TokenGrantError> {
    let requested: Vec<&str> = requested.split_whitespace().collect();
    let is_requested =
        |scope: &&String| requested.is_empty() || requested.contains(&scope.as_str());
    let scopes: Vec<String> = allowed.iter().filter(is_requested).cloned().collect();
    if scopes.is_empty() && !requested.is_empty() {
        return Err(TokenGrantError::ScopesNotAllowed);
    }
    Ok(scopes)
}

/// Compares digests, so that the time reveals neither the position of a difference nor the lengths.
fn is_same_secret(one: &str, other: &Secret) -> bool {
    let [one, other] = [one, other.expose()].map(|secret| digest(&SHA256, secret.as_bytes()));
    verify_slices_are_equal(one.as_ref(), other.as_ref()).is_ok()
}

/// Adds a number of seconds to a time, and returns seconds since 1970.
fn seconds_after(now: DateTime<Utc>, lifetime: Duration) -> i64 {
    let lifetime_seconds = i64::try_from(lifetime.as_secs()).unwrap_or(i64::MAX);
    now.timestamp().saturating_add(lifetime_seconds)
}

pub(super) const FORM_LIMITS: Limits = Limits {
    body_bytes_max: 64 * 1024,
    body_deadline: Duration::from_secs(30),
};
