//! What can go wrong when a server is asked.

use keywright_json::JsonError;
use serde::Deserialize;

/// Why there is no answer, or none that is of use.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The server answered, and did not do it.
    #[error("{0}")]
    Refused(Refusal),
    /// The identity provider answered, and gave no token.
    #[error("the identity provider refuses the login: {0}")]
    LoginRefused(Refusal),
    /// The identity provider can't be reached, or fails, and was asked often enough.
    #[error("the identity provider is not available: {0}")]
    ProviderUnavailable(Box<Self>),
    /// There is neither a token nor what one could be had by.
    #[error("there is no login for this server")]
    NotLoggedIn,
    /// The access token has expired, and nothing is there that it could be renewed by.
    #[error("the login has expired")]
    LoginExpired,
    /// There was no answer.
    #[error("{server} can't be reached: {cause}")]
    Unreachable {
        /// The address of the server, or of the identity provider.
        server: String,
        /// Why, with the causes of that.
        cause: String,
        /// How far the request came.
        loss: Loss,
    },
    /// The answer is larger than is taken.
    #[error("the answer is larger than {0} bytes")]
    AnswerTooLarge(usize),
    /// The answer is not what the API has.
    #[error("the answer is not what the API describes: {0}")]
    AnswerMalformed(JsonError),
    /// The answer to a request for something by its name holds nothing.
    #[error("the answer of the server is empty")]
    AnswerEmpty,
    /// What should be sent has no form in JSON.
    #[error("the request can't be written as JSON")]
    RequestMalformed(#[source] serde_json::Error),
    /// The address of the server or of its identity provider is none.
    #[error("{0:?} is no address of a server: https, a host and a port are needed")]
    AddressMalformed(String),
    /// The address holds an `@`: before it stand a user and a password, which are not repeated.
    #[error(
        "an address of a server has no user, no password and no `@`: log in to say who you are"
    )]
    AddressNamesUser,
    /// The server does not say who its identity provider is.
    #[error("the server names no identity provider; callers need a client certificate")]
    NoIdentityProvider,
    /// A document or response of the identity provider can't be used.
    #[error("the identity provider's response can't be used: {url}: {reason}")]
    ProviderMalformed {
        /// The address of the document or endpoint.
        url: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The identity provider does not support this kind of login.
    #[error("the identity provider does not support this: its discovery document has no {0}")]
    GrantUnsupported(&'static str),
    /// The login was refused on the identity provider's pages.
    #[error("the identity provider refuses the login: {0}")]
    LoginDenied(String),
    /// The user has not completed the login in time.
    #[error("the login was not completed in time; log in again")]
    LoginTimedOut,
    /// The access token holds no id that it could be revoked by.
    #[error("the access token has no id, so the login can't be ended at the identity provider")]
    TokenWithoutId,
    /// The certificates of trusted authorities can't be used.
    #[error("the certificates of trusted authorities are not PEM certificates")]
    AuthoritiesMalformed,
    /// The client certificate or its key can't be used.
    #[error(
        "the client certificate and its private key are not a PEM certificate and the key of it"
    )]
    ClientCertificateMalformed,
    /// The client could not be made.
    #[error("the client can't be made: {0}")]
    Configuration(String),
}

/// How far a request came that there was no answer to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Loss {
    /// There was no connection: it was not sent.
    NotConnected,
    /// The connection was lost: it may have been done.
    Lost,
    /// The other side is not who it should be, or took longer than is waited for: to try again at once is of no use.
    Lasting,
}

impl Error {
    /// The status that the server or the identity provider answered with.
    #[must_use]
    pub fn status(&self) -> Option<u16> {
        match self {
            Self::Refused(refusal) | Self::LoginRefused(refusal) => Some(refusal.status),
            Self::ProviderUnavailable(cause) => cause.status(),
            _ => None,
        }
    }

    /// Whether what was asked for is not there, or the caller may not know of it.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::Refused(refusal) if refusal.status == 404)
    }

    /// Whether the API itself says that what was asked for is not there, or hidden from the caller: a 404 with the body that
    /// it has for that. One without may come from anything between here and the server.
    #[must_use]
    pub fn is_told_not_found(&self) -> bool {
        matches!(self, Self::Refused(refusal) if refusal.status == 404 && !refusal.error.is_empty())
    }

    /// Whether the caller did not prove who it is, or may not do this.
    #[must_use]
    pub fn is_not_allowed(&self) -> bool {
        match self {
            Self::Refused(refusal) => matches!(refusal.status, 401 | 403),
            Self::LoginRefused(_)
            | Self::LoginDenied(_)
            | Self::LoginTimedOut
            | Self::NotLoggedIn
            | Self::LoginExpired => true,
            _ => false,
        }
    }

    /// Whether there was no answer, or the server or the identity provider is not available now.
    #[must_use]
    pub fn is_unavailable(&self) -> bool {
        match self {
            Self::Refused(refusal) => refusal.status == 503,
            Self::Unreachable { .. } | Self::ProviderUnavailable(_) => true,
            _ => false,
        }
    }

    /// The same error once more, where [`Error::is_unavailable`], for all that waited for one request.
    pub(super) fn outage(&self) -> Option<Self> {
        match self {
            Self::Refused(refusal) if refusal.status == 503 => Some(Self::Refused(refusal.clone())),
            Self::ProviderUnavailable(cause) => {
                let cause = match &**cause {
                    Self::Refused(refusal) => Self::Refused(refusal.clone()),
                    other => other.outage()?,
                };
                Some(Self::ProviderUnavailable(Box::new(cause)))
            }
            Self::Unreachable {
                server,
                cause,
                loss,
            } => Some(Self::Unreachable {
                server: server.clone(),
                cause: cause.clone(),
                loss: *loss,
            }),
            _ => None,
        }
    }
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

/// An answer that is no success.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[error("{}", self.words())]
pub struct Refusal {
    /// The status.
    pub status: u16,
    /// What the server says, or a code of OAuth 2.0; empty when the body is none of the API's.
    pub error: String,
    /// What the code means.
    pub description: Option<String>,
}

impl Refusal {
    /// Reads the body of an answer with this status.
    pub(crate) fn read(status: u16, body: &[u8]) -> Self {
        let Body { error, description } = keywright_json::read_bytes(body).unwrap_or_default();
        Self {
            status,
            error,
            description,
        }
    }

    fn words(&self) -> String {
        let Self {
            status,
            error,
            description,
        } = self;
        match (error.as_str(), description) {
            ("", _) => format!("the server answers with status {status}"),
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
    fn what_is_wrong_with_an_answer_is_told_without_repeating_it() {
        #[derive(Debug, Deserialize)]
        struct Answer {
            #[serde(rename = "token")]
            _token: u32,
        }
        let cases = [
            (r#"{"token": hunter2}"#, "invalid JSON (line 1, column 11)"),
            (
                "{\n\"token\": \"hunter2\"}",
                "a field is missing or has the wrong type (line 2, column 18)",
            ),
            (
                r#"{"hunter2": 1}"#,
                "a field is missing or has the wrong type (line 1, column 14)",
            ),
            (
                r#"{"token": "hunter2"#,
                "the JSON ends too early (line 1, column 18)",
            ),
        ];
        for (text, words) in cases {
            let error = keywright_json::read::<Answer>(text).unwrap_err();
            let error = Error::AnswerMalformed(error);
            let expected = format!("the answer is not what the API describes: {words}");
            assert_eq!(error.to_string(), expected, "{text}");
            assert!(!format!("{error:?}").contains("hunter2"));
        }
    }

    #[test]
    fn a_refusal_says_what_the_server_says() {
        let cases: [(&[u8], &str); 4] = [
            (br#"{"error":"no such thing"}"#, "no such thing"),
            (
                br#"{"error":"invalid_token","error_description":"it is malformed"}"#,
                "it is malformed (invalid_token)",
            ),
            (b"<html>", "the server answers with status 404"),
            (b"", "the server answers with status 404"),
        ];
        for (body, words) in cases {
            assert_eq!(Refusal::read(404, body).to_string(), words);
        }
    }
}
