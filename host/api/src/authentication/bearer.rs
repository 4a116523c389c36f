//! The bearer token of a request, and the responses for rejected tokens.

use std::time::Duration;

use axum::{
    http::{HeaderMap, StatusCode, header::AUTHORIZATION},
    response::{IntoResponse, Response},
};

use super::TokenRefused;
use crate::{measure::authentication_failed, response::ApiFailure};

/// Returns the token in the `Authorization` header. Other schemes than `Bearer` count as no credentials.
///
/// # Errors
/// If there is not exactly one token.
pub(crate) fn bearer_token(headers: &HeaderMap) -> Result<&str, TokenRefused> {
    let mut given = headers.get_all(AUTHORIZATION).iter();
    let Some(header) = given.next() else {
        return Err(TokenRefused::Absent);
    };
    if given.next().is_some() {
        return Err(TokenRefused::Invalid("there are two authorization headers"));
    }
    let text = header
        .to_str()
        .map_err(|_| TokenRefused::Invalid("the authorization header is not text"))?;
    let (scheme, token) = text.split_once(' ').unwrap_or((text, ""));
    if !scheme.eq_ignore_ascii_case("bearer") {
        return Err(TokenRefused::Absent);
    }
    Ok(token.trim())
}

impl From<TokenRefused> for ApiFailure {
    fn from(refused: TokenRefused) -> Self {
        match refused {
            TokenRefused::Absent => Self::unauthenticated(
                StatusCode::UNAUTHORIZED,
                "access_denied",
                "the request needs an access token, or a client certificate where the server takes one",
                "Bearer",
            ),
            TokenRefused::Expired => Self::unauthenticated(
                StatusCode::UNAUTHORIZED,
                "access_token_expired",
                "the access token has expired",
                r#"Bearer error="invalid_token""#,
            ),
            TokenRefused::Invalid(_) => Self::unauthenticated(
                StatusCode::UNAUTHORIZED,
                "invalid_token",
                "the access token is not valid here",
                r#"Bearer error="invalid_token""#,
            ),
            TokenRefused::NotAccepted => Self::unauthenticated(
                StatusCode::UNAUTHORIZED,
                "invalid_token",
                "access tokens are not accepted here: use a client certificate without a token",
                r#"Bearer error="invalid_token""#,
            ),
            TokenRefused::ScopesMissing(required) => Self::unauthenticated(
                StatusCode::FORBIDDEN,
                "insufficient_scope",
                "the access token lacks a scope that is required here",
                format!(r#"Bearer error="insufficient_scope", scope="{required}""#),
            ),
            TokenRefused::Unverifiable => Self::unavailable(
                "the access token can't be checked, because the identity provider has not answered",
                UNVERIFIABLE_RETRY_AFTER,
            ),
        }
    }
}

impl IntoResponse for TokenRefused {
    fn into_response(self) -> Response {
        if let Self::Invalid(reason) = self {
            tracing::debug!(reason, "rejected token");
        }
        authentication_failed("token", self.word());
        ApiFailure::from(self).into_response()
    }
}

impl TokenRefused {
    /// Returns the value for metrics.
    fn word(&self) -> &'static str {
        match self {
            Self::Absent => "absent",
            Self::Expired => "expired",
            Self::Invalid(_) => "invalid",
            Self::NotAccepted => "not_accepted",
            Self::ScopesMissing(_) => "scopes_missing",
            Self::Unverifiable => "unverifiable",
        }
    }
}

const UNVERIFIABLE_RETRY_AFTER: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(values: &[&str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(AUTHORIZATION, value.parse().unwrap());
        }
        headers
    }

    #[test]
    fn the_scheme_is_not_case_sensitive() {
        for value in ["Bearer a.b.c", "bearer a.b.c", "BEARER   a.b.c "] {
            assert_eq!(bearer_token(&headers(&[value])), Ok("a.b.c"), "{value}");
        }
    }

    #[test]
    fn no_header_and_other_schemes_are_no_credentials() {
        for values in [&[][..], &["Basic dTpw"], &["Bearers a"], &[""]] {
            let headers = headers(values);
            assert_eq!(
                bearer_token(&headers),
                Err(TokenRefused::Absent),
                "{values:?}"
            );
        }
    }

    #[test]
    fn two_headers_are_rejected() {
        let headers = headers(&["Bearer a.b.c", "Bearer a.b.c"]);
        let refused = bearer_token(&headers);
        assert!(matches!(refused, Err(TokenRefused::Invalid(_))));
    }
}
