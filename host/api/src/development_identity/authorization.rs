//! Login in the browser: the authorization endpoint with its login form (RFC 6749, section 4.1; RFC 7636).

use std::sync::Arc;

use axum::{
    extract::{Request, State},
    http::{
        HeaderName, HeaderValue, Method, StatusCode,
        header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE, LOCATION, REFERRER_POLICY},
    },
    response::{IntoResponse, Response},
};
use maud::{DOCTYPE, html};
use uuid::Uuid;

use super::{
    codes::IssuedCode,
    grant::{FORM_LIMITS, Provider},
};
use crate::{
    request::{QueryError, QueryParameters, read_body},
    response::ApiError,
};

/// A request to log in, as the client's browser sends it.
pub(super) struct LoginRequest {
    client_id: String,
    redirect_uri: String,
    state: String,
    challenge: String,
    scope: String,
    nonce: Option<String>,
}

impl LoginRequest {
    /// Reads and checks a request. The browser is only redirected to registered addresses.
    fn read(provider: &Provider, form: &QueryParameters) -> Result<Self, String> {
        let invalid = |error: QueryError| error.to_string();
        let required = |name| form.required(name).map(str::to_owned).map_err(invalid);
        let request = Self {
            client_id: required("client_id")?,
            redirect_uri: required("redirect_uri")?,
            state: required("state")?,
            challenge: required("code_challenge")?,
            scope: form
                .text("scope")
                .map_err(invalid)?
                .unwrap_or_default()
                .to_owned(),
            nonce: form.text("nonce").map_err(invalid)?.map(str::to_owned),
        };
        if required("response_type")? != "code" {
            return Err("response_type must be code".to_owned());
        }
        if required("code_challenge_method")? != "S256" {
            return Err("code_challenge_method must be S256".to_owned());
        }
        let mut clients = provider.settings.clients.iter();
        let client = clients.find(|client| client.id == request.client_id);
        let client = client.ok_or("client_id names no configured client")?;
        if !client.redirect_uris.contains(&request.redirect_uri) {
            return Err("redirect_uri is not an address of this client".to_owned());
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
        // The address may have a query of its own (RFC 6749, section 3.1.2).
        let uri = &self.redirect_uri;
        let separator = if uri.contains('?') { '&' } else { '?' };
        let location = format!("{uri}{separator}{query}");
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
) -> Result<Response, ApiError> {
    let is_login = request.method() == Method::POST;
    let form = if is_login {
        QueryParameters::parse(&read_body(request, &FORM_LIMITS).await?)
    } else {
        QueryParameters::parse(request.uri().query().unwrap_or_default().as_bytes())
    };
    let login = match LoginRequest::read(&provider, &form) {
        Ok(login) => login,
        Err(refused) => {
            let message = format!("The login request is invalid: {refused}.");
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
