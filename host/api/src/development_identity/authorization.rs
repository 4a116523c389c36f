//! Login in the browser: the authorization endpoint with its login form, and the codes that clients exchange for tokens
//! (RFC 6749, section 4.1; RFC 7636).

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use aws_lc_rs::digest::{SHA256, digest};
use axum::{
    extract::{Request, State},
    http::{
        HeaderName, HeaderValue, Method, StatusCode,
        header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE, LOCATION, REFERRER_POLICY},
    },
    response::{IntoResponse, Response},
};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use maud::{DOCTYPE, html};
use uuid::Uuid;

use super::{
    FORM_LIMITS,
    grant::{DevelopmentClient, Provider, TokenGrantError},
};
use crate::request::{QueryParameters, read_body};

/// A request to log in, as the client's browser sends it.
pub(super) struct LoginRequest {
    client_id: String,
    redirect_uri: String,
    state: String,
    challenge: String,
    scope: String,
    nonce: Option<String>,
}

/// A code that was issued for a login.
#[derive(Clone)]
pub(super) struct IssuedCode {
    pub(super) client_id: String,
    pub(super) user_id: Uuid,
    pub(super) scope: String,
    pub(super) nonce: Option<String>,
    redirect_uri: String,
    challenge: String,
    ends_at_seconds: i64,
}

/// The codes that have not been exchanged yet.
#[derive(Default)]
pub(super) struct IssuedCodes(Mutex<HashMap<String, IssuedCode>>);

impl IssuedCodes {
    /// Issues a code, or returns `None` if too many codes are outstanding.
    fn issue(&self, code: IssuedCode, now_seconds: i64) -> Option<String> {
        let mut codes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        codes.retain(|_, code| code.ends_at_seconds > now_seconds);
        if codes.len() >= CODES_MAX {
            return None;
        }
        let text = format!("{}{}", Uuid::new_v4().simple(), Uuid::new_v4().simple());
        codes.insert(text.clone(), code);
        Some(text)
    }

    /// Takes the code of a token request. A code can be exchanged once, even if the exchange fails.
    pub(super) fn take(
        &self,
        form: &QueryParameters,
        client: &DevelopmentClient,
        now_seconds: i64,
    ) -> Result<IssuedCode, TokenGrantError> {
        let code = form.required("code")?;
        let mut codes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let issued = codes.remove(code).ok_or(TokenGrantError::CodeWrong)?;
        let verifier = form.required("code_verifier")?;
        let challenge = URL_SAFE_NO_PAD.encode(digest(&SHA256, verifier.as_bytes()));
        let is_valid = issued.ends_at_seconds > now_seconds
            && issued.client_id == client.id
            && issued.redirect_uri == form.required("redirect_uri")?
            && issued.challenge == challenge;
        is_valid.then_some(issued).ok_or(TokenGrantError::CodeWrong)
    }
}

impl LoginRequest {
    /// Reads and checks a request. The browser is only redirected to registered addresses.
    fn read(provider: &Provider, form: &QueryParameters) -> Result<Self, &'static str> {
        let required = |name| form.required(name).map(str::to_owned).map_err(|_| name);
        let request = Self {
            client_id: required("client_id")?,
            redirect_uri: required("redirect_uri")?,
            state: required("state")?,
            challenge: required("code_challenge")?,
            scope: form
                .text("scope")
                .map_err(|_| "scope")?
                .unwrap_or_default()
                .to_owned(),
            nonce: form.text("nonce").map_err(|_| "nonce")?.map(str::to_owned),
        };
        if required("response_type")? != "code" {
            return Err("response_type");
        }
        if required("code_challenge_method")? != "S256" {
            return Err("code_challenge_method");
        }
        let mut clients = provider.clients.iter();
        let client = clients.find(|client| client.id == request.client_id);
        let client = client.ok_or("client_id")?;
        if !client.redirect_uris.contains(&request.redirect_uri) {
            return Err("redirect_uri");
        }
        Ok(request)
    }

    /// Returns the redirection to the client with a new code for the user.
    fn redirection(self, provider: &Provider, user_id: Uuid) -> Response {
        let now_seconds = provider.clock.now().timestamp();
        let code = IssuedCode {
            client_id: self.client_id,
            user_id,
            scope: self.scope,
            nonce: self.nonce,
            redirect_uri: self.redirect_uri.clone(),
            challenge: self.challenge,
            ends_at_seconds: now_seconds.saturating_add(CODE_SECONDS),
        };
        let Some(code) = provider.codes.issue(code, now_seconds) else {
            return page(
                StatusCode::SERVICE_UNAVAILABLE,
                None,
                "Too many logins are in progress.",
            );
        };
        let query = form_urlencoded::Serializer::new(String::new())
            .append_pair("code", &code)
            .append_pair("state", &self.state)
            .finish();
        let location = format!("{}?{query}", self.redirect_uri);
        match HeaderValue::try_from(location) {
            Ok(location) => (StatusCode::SEE_OTHER, [(LOCATION, location)]).into_response(),
            Err(_) => StatusCode::BAD_REQUEST.into_response(),
        }
    }

    fn fields(&self) -> Vec<(&'static str, &str)> {
        let mut fields = vec![
            ("response_type", "code"),
            ("client_id", &self.client_id),
            ("redirect_uri", &self.redirect_uri),
            ("state", &self.state),
            ("code_challenge", &self.challenge),
            ("code_challenge_method", "S256"),
            ("scope", &self.scope),
        ];
        fields.extend(self.nonce.as_deref().map(|nonce| ("nonce", nonce)));
        fields
    }
}

/// Shows the login form, or checks it and redirects the browser to the client.
pub(super) async fn authorize(
    State(provider): State<Arc<Provider>>,
    request: Request,
) -> Result<Response, crate::response::ApiError> {
    let is_login = request.method() == Method::POST;
    let form = if is_login {
        QueryParameters::parse(&read_body(request, &FORM_LIMITS).await?)
    } else {
        QueryParameters::parse(request.uri().query().unwrap_or_default().as_bytes())
    };
    let login = match LoginRequest::read(&provider, &form) {
        Ok(login) => login,
        Err(parameter) => {
            let message = format!("The parameter {parameter} is missing or not accepted.");
            return Ok(page(StatusCode::BAD_REQUEST, None, &message));
        }
    };
    if !is_login {
        return Ok(page(StatusCode::OK, Some(&login), ""));
    }
    Ok(match provider.user(&form) {
        Ok(user) => login.redirection(&provider, user.id),
        Err(wrong) => page(StatusCode::FORBIDDEN, Some(&login), &wrong.to_string()),
    })
}

fn page(status: StatusCode, login: Option<&LoginRequest>, message: &str) -> Response {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { "Development login" }
            }
            body {
                main {
                    h1 { "Development login" }
                    @if !message.is_empty() { p role="alert" { (message) } }
                    @if let Some(login) = login {
                        form method="post" {
                            @for (name, value) in login.fields() { input type="hidden" name=(name) value=(value); }
                            p { label { "User name " input name="username" autocomplete="username" required autofocus; } }
                            p { label { "Password " input name="password" type="password" autocomplete="current-password" required; } }
                            p { button { "Log in" } }
                        }
                    }
                }
            }
        }
    };
    let headers: [(HeaderName, &'static str); 3] = [
        (CONTENT_TYPE, "text/html; charset=utf-8"),
        (
            CONTENT_SECURITY_POLICY,
            "default-src 'none'; base-uri 'none'; frame-ancestors 'none'",
        ),
        (REFERRER_POLICY, "no-referrer"),
    ];
    (status, headers, page.into_string()).into_response()
}

/// The lifetime of a code.
const CODE_SECONDS: i64 = 60;

/// Maximum number of codes that have not been exchanged.
const CODES_MAX: usize = 1_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outstanding_codes_are_limited_until_they_expire() {
        let codes = IssuedCodes::default();
        let code = |ends_at_seconds| IssuedCode {
            client_id: "client".to_owned(),
            user_id: Uuid::nil(),
            scope: String::new(),
            nonce: None,
            redirect_uri: String::new(),
            challenge: String::new(),
            ends_at_seconds,
        };
        for _ in 0..CODES_MAX {
            assert!(codes.issue(code(10), 0).is_some());
        }
        assert!(codes.issue(code(10), 0).is_none());
        assert!(codes.issue(code(20), 10).is_some());
    }
}
