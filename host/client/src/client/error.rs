//! Errors of requests.

use keywright_json::JsonError;
use serde::Deserialize;

/// The reason why a request failed.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The server refused the request.
    #[error(transparent)]
    Refused(#[from] ResponseError),
    /// The identity provider refused to issue a token.
    #[error("the identity provider refuses the login: {0}")]
    LoginRefused(ResponseError),
    /// The identity provider refused to revoke a login.
    #[error("the identity provider refuses the revocation: {0}")]
    RevocationRefused(ResponseError),
    /// Revoking a client's login requires the client's secret.
    #[error("revoking a client's login requires its secret")]
    ClientSecretMissing,
    /// The identity provider was unreachable or failed in every attempt.
    #[error("the identity provider is not available: {0}")]
    ProviderUnavailable(Box<Self>),
    /// There is neither a token nor a grant.
    #[error("you are not logged in to this server")]
    NotLoggedIn,
    /// The access token has expired and can't be renewed.
    #[error("the login has expired")]
    LoginExpired,
    /// The access token from this source has expired, and there is no grant to renew it.
    #[error("the token in {0} has expired; replace it")]
    TokenExpired(String),
    /// The server rejects the access token from this source.
    #[error("the token in {origin} is not valid for {server}")]
    TokenInvalid {
        /// The file or variable that contains the token.
        origin: String,
        /// The server's address.
        server: String,
    },
    /// The server or the identity provider refuses or requires a client certificate.
    #[error("{server} {reason}")]
    ClientCertificateRefused {
        /// The address.
        server: String,
        /// What it refuses, and why.
        reason: &'static str,
    },
    /// The server did not respond.
    #[error("could not reach {server}: {cause}")]
    Unreachable {
        /// The address of the server, or of the identity provider.
        server: String,
        /// The error at the root, without the errors that it caused.
        cause: String,
        /// The point at which the request failed.
        loss: Loss,
    },
    /// The response exceeds this limit in bytes.
    #[error("the response is larger than {0} bytes")]
    ResponseTooLarge(usize),
    /// The response does not match the API.
    #[error("malformed response: {0}")]
    ResponseMalformed(JsonError),
    /// The response to `GET /info` is not the response of a server with this API.
    #[error(
        "{server} is not the address of a CredHub-compatible server: GET {server}/info: {cause}"
    )]
    OtherServer {
        /// The server's address.
        server: String,
        /// The cause.
        cause: Box<Self>,
    },
    /// The response has a body, although the API defines none.
    #[error("the response has a body; check for a proxy between the client and the server")]
    ResponseNotEmpty,
    /// The response to a lookup by name contains no object.
    #[error("the server's response is empty")]
    ResponseEmpty,
    /// The response is about the credential with this name, which was not requested.
    #[error("the server responded with another credential: {0}")]
    ResponseOfOther(String),
    /// The request can't be serialized as JSON.
    #[error("could not write the request as JSON")]
    RequestMalformed(#[source] JsonError),
    /// The address of the server or of its identity provider is malformed.
    #[error("invalid server address {0:?}: must be https:// with a host and an optional port")]
    AddressMalformed(String),
    /// The address contains an `@`. The message omits the address, because it may contain a password.
    #[error(
        "invalid server address: must not contain a user, a password or `@`; log in with --username or --client-id"
    )]
    AddressNamesUser,
    /// The server has no identity provider.
    #[error("the server has no identity provider; use a client certificate")]
    NoIdentityProvider,
    /// The server's identity provider, at this address, is not the provider that issued the tokens.
    #[error("the server's identity provider has changed since the login: {0}; log in again")]
    ProviderChanged(String),
    /// A document or response of the identity provider can't be used.
    #[error("the identity provider's response can't be used: {url}: {reason}")]
    ProviderMalformed {
        /// The address of the document or endpoint.
        url: String,
        /// The cause.
        reason: String,
    },
    /// The identity provider does not support this kind of login or revocation. Contains the missing field of its discovery
    /// document.
    #[error(
        "the identity provider does not support this operation: its discovery document has no {0}"
    )]
    GrantUnsupported(&'static str),
    /// The login was refused on the identity provider's pages.
    #[error("the identity provider refuses the login: {0}")]
    LoginDenied(String),
    /// The user has not completed the login in time.
    #[error("the login was not completed in time; log in again")]
    LoginTimedOut,
    /// The access token has no id, so it can't be revoked by id.
    #[error("the access token has no id, so the identity provider can't revoke it")]
    TokenWithoutId,
    /// The trusted CA certificates are malformed.
    #[error("the trusted CA certificates are not valid PEM")]
    AuthoritiesMalformed,
    /// The client certificate or its key is malformed.
    #[error("the client certificate or its private key is not valid PEM")]
    ClientCertificateMalformed,
    /// The client, or its listener for the browser, can't be created.
    #[error("{0}")]
    Configuration(String),
}

/// The point at which a request without a response failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Loss {
    /// No connection: the request was not sent.
    NotConnected,
    /// The connection was lost: the request may have taken effect.
    Lost,
    /// TLS failed, the request timed out, or the response is malformed: an immediate retry is useless.
    Lasting,
}

impl Error {
    /// Returns the status of the server's or the identity provider's response.
    #[must_use]
    pub fn status(&self) -> Option<u16> {
        match self {
            Self::Refused(refusal)
            | Self::LoginRefused(refusal)
            | Self::RevocationRefused(refusal) => Some(refusal.status),
            Self::ProviderUnavailable(cause) => cause.status(),
            _ => None,
        }
    }

    /// Returns whether the requested object does not exist or is hidden from the caller.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::Refused(refusal) if refusal.status == 404)
    }

    /// Returns whether the API itself reports that the object does not exist or is hidden: a 404 with the API's error body.
    /// Other 404s may come from a proxy.
    #[must_use]
    pub fn is_api_not_found(&self) -> bool {
        matches!(self, Self::Refused(refusal) if refusal.status == 404 && !refusal.error.is_empty())
    }

    /// Returns whether the caller is not authenticated or not authorized.
    #[must_use]
    pub fn is_not_allowed(&self) -> bool {
        match self {
            Self::Refused(refusal) => matches!(refusal.status, 401 | 403),
            Self::LoginRefused(_)
            | Self::RevocationRefused(_)
            | Self::ClientCertificateRefused { .. }
            | Self::LoginDenied(_)
            | Self::LoginTimedOut
            | Self::NotLoggedIn
            | Self::LoginExpired
            | Self::ProviderChanged(_)
            | Self::TokenExpired(_)
            | Self::TokenInvalid { .. } => true,
            _ => false,
        }
    }

    /// Returns whether the server or the identity provider is unreachable or unavailable.
    #[must_use]
    pub fn is_unavailable(&self) -> bool {
        match self {
            Self::Refused(refusal) => refusal.status == 503,
            Self::Unreachable { .. } | Self::ProviderUnavailable(_) => true,
            _ => false,
        }
    }
}

/// An error response.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[error("{}", self.message())]
pub struct ResponseError {
    /// The HTTP status.
    pub status: u16,
    /// The server's message or an OAuth 2.0 error code; empty if the body does not match the API.
    pub error: String,
    /// The description of the error code.
    pub description: Option<String>,
}

impl ResponseError {
    /// Parses the body of a response with this status.
    pub(crate) fn read(status: u16, body: &[u8]) -> Self {
        let Body { error, description } = keywright_json::read_bytes(body).unwrap_or_default();
        Self {
            status,
            error,
            description,
        }
    }

    fn message(&self) -> String {
        match (self.error.as_str(), &self.description) {
            ("", _) => format!("the server responded with status {}", self.status),
            (error, Some(description)) => format!("{description} ({error})"),
            (error, None) => error.to_owned(),
        }
    }
}

#[derive(Default, Deserialize)]
struct Body {
    error: String,
    #[serde(rename = "error_description")]
    description: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_show_the_message_of_the_server() {
        let cases: [(&[u8], &str); 4] = [
            (br#"{"error":"no such thing"}"#, "no such thing"),
            (
                br#"{"error":"invalid_token","error_description":"it is malformed"}"#,
                "it is malformed (invalid_token)",
            ),
            (b"<html>", "the server responded with status 404"),
            (b"", "the server responded with status 404"),
        ];
        for (body, words) in cases {
            assert_eq!(ResponseError::read(404, body).to_string(), words);
        }
    }
}
