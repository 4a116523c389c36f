//! An identity provider for development, built into the server, so that users and standard clients can log in without
//! further services. It is not suitable for production: its clients and users are in the configuration, and revocations are
//! lost at shutdown.
//!
//! This file contains its HTTP handlers. `authorization.rs` is the login in the browser, and `codes.rs`
//! has its codes; `grant.rs` verifies token requests; `tokens.rs` creates and parses tokens, and stores
//! revoked logins.

mod authorization;
mod codes;
mod grant;
mod tokens;

use std::sync::Arc;

use axum::{
    Extension,
    extract::{Request, State},
    http::{HeaderMap, HeaderValue, Method, StatusCode, header::AUTHORIZATION},
    response::{IntoResponse, Response},
};
use base64::{Engine, engine::general_purpose::STANDARD};
use keywright_core::{Secret, ports::Clock};
use serde_json::{Value, json};

use crate::{
    authentication::{TokenError, TokenRules, TokenVerifier, bearer_token},
    request::{QueryParameters, has_media_type, read_body},
    response::{self, ApiError},
    route::{MethodHandler, Mounted, PathSegments, bound},
};
use authorization::authorize;
use codes::IssuedCodes;
use grant::{ClientCredentials, FORM_LIMITS, Provider, TokenGrantError};
use tokens::{RevokedSessions, TokenSigner};

pub use grant::{DevelopmentClient, DevelopmentIdentitySettings, DevelopmentUser};
pub use tokens::SigningKeyError;

/// The identity provider. Clones share its state.
#[derive(Clone)]
pub struct DevelopmentIdentity(Arc<Provider>);

impl DevelopmentIdentity {
    /// Creates the provider.
    pub fn new(
        settings: DevelopmentIdentitySettings,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, SigningKeyError> {
        Ok(Self(Arc::new(Provider {
            signer: TokenSigner::new(&settings.signing_key_pem, settings.issuer.clone())?,
            settings,
            revoked: RevokedSessions::default(),
            codes: IssuedCodes::default(),
            clock,
        })))
    }

    /// Returns a verifier of this provider's tokens that needs no network requests.
    pub fn token_verifier(&self, rules: TokenRules, clock: Arc<dyn Clock>) -> TokenVerifier {
        let signer = &self.0.signer;
        let key = signer.verification_key().clone();
        TokenVerifier::with_key(key, signer.issuer(), rules, clock)
    }

    /// Returns the provider's routes. All are open, because clients need them to get their first token.
    pub(crate) fn routes(&self) -> Vec<Mounted> {
        let below = self.0.settings.path_prefix.trim_end_matches('/');
        let provider = || Arc::clone(&self.0);
        let open = |method, path: &str, handle| Mounted {
            path: format!("{below}{path}"),
            is_open: true,
            is_of_user_interface: false,
            follows_mode: false,
            handler: MethodHandler {
                method,
                action: None,
                handle,
            },
        };
        let discovery_path = "/.well-known/openid-configuration";
        let revoke_path = "/oauth/token/revoke/{token_id}";
        vec![
            open(Method::GET, "/info", bound(info, provider())),
            open(Method::GET, AUTHORIZE, bound(authorize, provider())),
            open(Method::POST, AUTHORIZE, bound(authorize, provider())),
            open(Method::POST, "/oauth/token", bound(token, provider())),
            open(Method::DELETE, revoke_path, bound(revoke, provider())),
            open(Method::GET, "/token_keys", bound(token_keys, provider())),
            open(Method::GET, discovery_path, bound(discovery, provider())),
        ]
    }
}

async fn info(State(provider): State<Arc<Provider>>) -> Response {
    json_body(&json!({
        "app": {"name": "keywright development identity", "version": env!("CARGO_PKG_VERSION")},
        "links": {"login": provider.signer.issuer()},
        "prompts": {
            "username": ["text", "User name"],
            "password": ["password", "Password"],
        },
    }))
}

async fn discovery(State(provider): State<Arc<Provider>>) -> Response {
    let issuer = provider.signer.issuer();
    json_body(&json!({
        "issuer": issuer,
        "authorization_endpoint": format!("{issuer}{AUTHORIZE}"),
        "token_endpoint": format!("{issuer}/oauth/token"),
        "jwks_uri": format!("{issuer}/token_keys"),
        "grant_types_supported": ["authorization_code", "client_credentials", "password", "refresh_token"],
        "code_challenge_methods_supported": ["S256"],
        "token_endpoint_auth_methods_supported": ["client_secret_basic", "client_secret_post"],
        "id_token_signing_alg_values_supported": ["RS256"],
        "response_types_supported": ["code"],
        "subject_types_supported": ["public"],
    }))
}

async fn token_keys(State(provider): State<Arc<Provider>>) -> Response {
    json_body(&provider.signer.published_keys())
}

/// Issues a token. The parameter `response_type`, which some clients send, is ignored.
async fn token(
    State(provider): State<Arc<Provider>>,
    request: Request,
) -> Result<Response, ApiError> {
    let headers = request.headers().clone();
    if !has_media_type(&headers, "application/x-www-form-urlencoded") {
        return Ok(TokenGrantError::RequestMalformed.into_response());
    }
    let form = QueryParameters::parse(&read_body(request, &FORM_LIMITS).await?);
    let granted = client_credentials(&headers, &form)
        .and_then(|credentials| provider.grant(&form, &credentials));
    match granted {
        Ok(granted) => response::rendered(&granted),
        Err(refused) => Ok(refused.into_response()),
    }
}

/// Revokes a login. Requires one of its tokens, so that no caller can revoke another's login.
async fn revoke(
    State(provider): State<Arc<Provider>>,
    Extension(path): Extension<PathSegments>,
    headers: HeaderMap,
) -> Result<StatusCode, TokenError> {
    let token = bearer_token(&headers)?;
    if path
        .first()
        .is_some_and(|token_id| provider.revoke(token, token_id))
    {
        Ok(StatusCode::OK)
    } else {
        Err(TokenError::Invalid("the token belongs to another login"))
    }
}

impl IntoResponse for TokenGrantError {
    fn into_response(self) -> Response {
        let (status, code) = match self {
            Self::ClientUnknown => (StatusCode::UNAUTHORIZED, "invalid_client"),
            Self::CodeWrong | Self::CredentialsWrong | Self::RefreshTokenWrong => {
                (StatusCode::BAD_REQUEST, "invalid_grant")
            }
            Self::GrantNotAllowed => (StatusCode::BAD_REQUEST, "unauthorized_client"),
            Self::GrantUnknown => (StatusCode::BAD_REQUEST, "unsupported_grant_type"),
            Self::ParameterInvalid(_) | Self::RequestMalformed => {
                (StatusCode::BAD_REQUEST, "invalid_request")
            }
            Self::ScopesNotAllowed => (StatusCode::BAD_REQUEST, "invalid_scope"),
            Self::SigningFailed => (StatusCode::INTERNAL_SERVER_ERROR, "server_error"),
        };
        let body = json!({"error": code, "error_description": self.to_string()});
        response::json(status, body.to_string())
    }
}

/// Returns the client's credentials from the header of the basic scheme, or else from the form.
fn client_credentials(
    headers: &HeaderMap,
    form: &QueryParameters,
) -> Result<ClientCredentials, TokenGrantError> {
    let Some(header) = headers.get(AUTHORIZATION) else {
        return Ok(ClientCredentials {
            id: form.required("client_id")?.to_owned(),
            secret: Secret::new(form.text("client_secret")?.unwrap_or_default().to_owned()),
        });
    };
    basic_credentials(header).ok_or(TokenGrantError::ClientUnknown)
}

fn basic_credentials(header: &HeaderValue) -> Option<ClientCredentials> {
    let (scheme, encoded) = header.to_str().ok()?.split_once(' ')?;
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    let decoded = String::from_utf8(STANDARD.decode(encoded.trim()).ok()?).ok()?;
    let (id, secret) = decoded.split_once(':')?;
    Some(ClientCredentials {
        id: form_decoded(id),
        secret: Secret::new(form_decoded(secret)),
    })
}

/// Decodes an id or a secret of the basic scheme, which are encoded as in forms (RFC 6749, section 2.3.1).
fn form_decoded(text: &str) -> String {
    // The text contains an ampersand only if the client did not encode it.
    let value = ["=", &text.replace('&', "%26")].concat();
    let mut values = form_urlencoded::parse(value.as_bytes());
    values
        .next()
        .map(|(_, value)| value.into_owned())
        .unwrap_or_default()
}

fn json_body(body: &Value) -> Response {
    response::json(StatusCode::OK, body.to_string())
}

/// The path of the login form.
const AUTHORIZE: &str = "/oauth/authorize";
