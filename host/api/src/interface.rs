//! A user interface for browsers, which the server mounts next to the API.
//!
//! Its requests pass through the same pipeline as requests to the API: the access token of a request's session replaces the
//! `Authorization` header. So a user has the same identity, limits and audit trail as with the API.

use std::collections::HashMap;

use async_trait::async_trait;
use axum::{
    body::{Body, to_bytes},
    extract::Request,
    http::{
        HeaderValue, Method, StatusCode,
        header::{AUTHORIZATION, CONNECTION, CONTENT_TYPE, RETRY_AFTER},
        request::Parts,
    },
    response::{IntoResponse, Response},
};
use keywright_core::{Secret, UseCaseError};

use crate::{
    authentication::TokenError,
    response::{ApiError, JSON_MEDIA_TYPE},
    route::{BoundHandler, MethodHandler, Mounted},
};

/// A user interface for browsers.
#[async_trait]
pub trait UserInterface: Send + Sync {
    /// Returns the routes. Called once.
    fn routes(&self) -> Vec<InterfaceRoute>;

    /// Returns the access token of the session of a request.
    ///
    /// # Errors
    /// The response to a request without a valid session, or to a request from another site.
    async fn access_token(&self, request: &mut Parts) -> Result<Secret, Response>;

    /// Returns the page for a request that was refused before it was handled, with this status and message.
    fn refused(&self, request: &RefusedRequest, status: StatusCode, message: &str) -> Response;
}

/// A route of a user interface: one method on one path.
pub struct InterfaceRoute {
    /// The HTTP method. A route for GET also responds to HEAD.
    pub method: Method,
    /// The path, without variable segments. A last segment `{*}` matches all paths below that no other route matches.
    pub path: &'static str,
    /// Whether requests need a session.
    pub access: InterfaceAccess,
    /// The action of its requests in the audit trail, or `None` if they are not audited.
    pub action: Option<&'static str>,
    /// The handler. Requests with a session have an `Arc<Caller>` in their extensions; other requests have the client's network
    /// ([`client_network`](crate::client_network)), an `IpAddr`.
    pub handle: BoundHandler,
}

/// The access that a route of a user interface requires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InterfaceAccess {
    /// No session.
    Open,
    /// A session. Read-only mode refuses methods other than GET.
    Session,
    /// A session. Read-only mode does not apply, because the route only reads.
    ReadingSession,
}

/// The parts of a refused request that matter for its page.
#[derive(Clone, Debug)]
pub struct RefusedRequest {
    /// The HTTP method.
    pub method: Method,
    /// The path and query.
    pub target: String,
}

impl RefusedRequest {
    pub(crate) fn of(request: &Request) -> Self {
        let target = request.uri().path_and_query();
        Self {
            method: request.method().clone(),
            target: target.map(ToString::to_string).unwrap_or_default(),
        }
    }
}

/// Returns the status and the message of a failure, as in responses of the API, and logs failures of the server.
pub fn status_and_message(failure: UseCaseError) -> (StatusCode, String) {
    let error = ApiError::from(failure);
    (error.status(), error.into_message())
}

impl InterfaceRoute {
    pub(crate) fn mounted(self) -> Mounted {
        Mounted {
            path: self.path.to_owned(),
            is_open: self.access == InterfaceAccess::Open,
            is_of_user_interface: true,
            follows_mode: self.access == InterfaceAccess::Session,
            handler: MethodHandler {
                method: self.method,
                action: self.action,
                handle: self.handle,
            },
        }
    }
}

/// Replaces the `Authorization` header of a request with the access token of its session.
///
/// # Errors
/// The response of the interface to a request that it refuses.
pub(crate) async fn authorize(
    interface: &dyn UserInterface,
    request: Request,
) -> Result<Request, Response> {
    let (mut parts, body) = request.into_parts();
    parts.headers.remove(AUTHORIZATION);
    let token = interface.access_token(&mut parts).await?;
    let field = HeaderValue::try_from(format!("Bearer {}", token.expose()));
    let mut field = field.map_err(|_| TokenError::Invalid("not text").into_response())?;
    field.set_sensitive(true);
    parts.headers.insert(AUTHORIZATION, field);
    Ok(Request::from_parts(parts, body))
}

/// Replaces an error response of the API with a page. Other responses, which the interface itself returned, are unchanged.
pub(crate) async fn with_page(
    interface: &dyn UserInterface,
    request: &RefusedRequest,
    response: Response,
) -> Response {
    let is_json = response
        .headers()
        .get(CONTENT_TYPE)
        .is_some_and(|media_type| media_type == JSON_MEDIA_TYPE);
    if !is_json {
        return response;
    }
    let (parts, body) = response.into_parts();
    let message = message(body).await.unwrap_or_default();
    let mut page = interface.refused(request, parts.status, &message);
    for name in [CONNECTION, RETRY_AFTER] {
        if let Some(value) = parts.headers.get(&name) {
            page.headers_mut().insert(name, value.clone());
        }
    }
    page
}

async fn message(body: Body) -> Option<String> {
    let body = to_bytes(body, ERROR_BYTES_MAX).await.ok()?;
    let mut fields: HashMap<String, String> = keywright_json::read_bytes(&body).ok()?;
    let description = fields.remove("error_description");
    description.or_else(|| fields.remove("error"))
}

/// Maximum size of the body of an error response.
const ERROR_BYTES_MAX: usize = 64 * 1024;
