//! Sends requests and receives responses, without interpreting them.

use std::{
    error::Error as StdError,
    io,
    time::{Duration, SystemTime},
};

use form_urlencoded::byte_serialize;
use reqwest::{
    Method, RequestBuilder, StatusCode, Url,
    header::{ACCEPT, CONTENT_TYPE, RETRY_AFTER},
};
use rustls::{CertificateError, InvalidMessage};
use serde::Serialize;
use zeroize::Zeroizing;

use super::{
    error::{Error, Loss, ResponseError},
    waits::{Waits, parse_retry_after},
};
use crate::Secret;

/// An API request, which can be sent more than once.
#[derive(Clone)]
pub(crate) struct Call {
    method: Method,
    path: String,
    body: Option<Zeroizing<Vec<u8>>>,
}

impl Call {
    /// Creates a request for this path, which starts with a slash.
    pub(crate) fn new(method: Method, path: impl Into<String>) -> Self {
        Self {
            method,
            path: path.into(),
            body: None,
        }
    }

    pub(crate) fn query(mut self, name: &str, value: &str) -> Self {
        let is_first = !self.path.contains('?');
        self.path.push(if is_first { '?' } else { '&' });
        let mut query = form_urlencoded::Serializer::new(String::new());
        self.path.push_str(&query.append_pair(name, value).finish());
        self
    }

    /// Adds a query parameter if it has a value.
    pub(crate) fn query_if(self, name: &str, value: Option<&str>) -> Self {
        match value {
            Some(value) => self.query(name, value),
            None => self,
        }
    }

    /// Returns whether a retry after this error has no side effects: the request was not sent, or it only reads.
    fn may_be_retried_after(&self, error: &Error) -> bool {
        let Error::Unreachable { loss, .. } = error else {
            return false;
        };
        match loss {
            Loss::NotConnected => true,
            Loss::Lost => self.method.is_safe(),
            Loss::Lasting => false,
        }
    }

    pub(crate) fn body(mut self, body: &impl Serialize) -> Result<Self, Error> {
        let body =
            serde_json::to_vec(body).map_err(|cause| Error::RequestMalformed(cause.into()))?;
        self.body = Some(Zeroizing::new(body));
        Ok(self)
    }
}

/// The connections to a server and its identity provider.
pub(super) struct Transport {
    pub(super) http: reqwest::Client,
    /// The server's address without a trailing slash.
    pub(super) server: String,
}

pub(crate) struct Response {
    pub(super) status: u16,
    pub(super) retry_after: Option<Duration>,
    pub(super) body: Zeroizing<Vec<u8>>,
}

impl Transport {
    pub(super) async fn send(
        &self,
        call: &Call,
        token: Option<&Secret>,
    ) -> Result<Response, Error> {
        let mut request = self
            .http
            .request(call.method.clone(), format!("{}{}", self.server, call.path))
            .header(ACCEPT, JSON)
            .header(CONTENT_TYPE, JSON);
        if let Some(token) = token {
            request = request.bearer_auth(token.expose());
        }
        if let Some(body) = &call.body {
            request = request.body(body.to_vec());
        }
        receive(request, &self.server, RESPONSE_BYTES_MAX).await
    }

    /// Creates a request with a form to the identity provider, with the client's id and secret, if any, in the `Authorization` header.
    pub(super) fn form(
        &self,
        url: &str,
        form: &[(&str, &str)],
        basic: Option<(&str, &Secret)>,
    ) -> RequestBuilder {
        let body = form_urlencoded::Serializer::new(String::new())
            .extend_pairs(form)
            .finish();
        let request = self
            .http
            .post(url)
            .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
            .body(body);
        let Some((id, secret)) = basic else {
            return request;
        };
        // Both are encoded, so that an id can contain a colon (RFC 6749, section 2.3.1).
        let encoded = |text: &str| byte_serialize(text.as_bytes()).collect::<String>();
        request.basic_auth(encoded(id), Some(encoded(secret.expose())))
    }
}

impl Response {
    pub(super) fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// Returns whether a retry may succeed soon: a 503, except in read-only mode.
    fn is_unavailable(&self) -> bool {
        self.status == StatusCode::SERVICE_UNAVAILABLE.as_u16()
            && ResponseError::read(self.status, &self.body).error != READ_ONLY
    }

    /// Returns whether the server rejects the access token as invalid, for a reason other than its age.
    pub(super) fn reports_invalid_token(&self) -> bool {
        self.status == StatusCode::UNAUTHORIZED.as_u16()
            && ResponseError::read(self.status, &self.body).error == "invalid_token"
    }

    /// Returns whether the access token has expired, according to the error code. The status does not matter.
    pub(super) fn reports_expired_token(&self) -> bool {
        self.status >= 400
            && ResponseError::read(self.status, &self.body).error == "access_token_expired"
    }
}

impl From<Response> for ResponseError {
    fn from(response: Response) -> Self {
        Self::read(response.status, &response.body)
    }
}

/// Sends a request, and retries it with backoff while the server is unavailable. Returns the response if it is successful.
///
/// # Errors
/// The outer error of `send` ends the attempts. After an inner error, the request is retried if a retry has no side effects.
pub(super) async fn send_with_retries<Sent>(
    call: &Call,
    waits: &Waits,
    send: impl Fn() -> Sent,
) -> Result<Response, Error>
where
    Sent: Future<Output = Result<Result<Response, Error>, Error>>,
{
    let mut retries = 0;
    loop {
        let (error, retry_after) = match send().await? {
            Ok(response) if response.is_success() => return Ok(response),
            Ok(response) if response.is_unavailable() => {
                let retry_after = response.retry_after;
                (Error::from(ResponseError::from(response)), retry_after)
            }
            Ok(response) => return Err(ResponseError::from(response).into()),
            Err(error) if call.may_be_retried_after(&error) => (error, None),
            Err(error) => return Err(error),
        };
        if !waits.wait("the server", retries, retry_after).await {
            return Err(error);
        }
        retries += 1;
    }
}

/// Validates and normalizes an https address, without a trailing slash.
pub(crate) fn address(text: &str) -> Result<String, Error> {
    // Checked first, because the error about a malformed address contains the address, and with it any password.
    if text.contains('@') {
        return Err(Error::AddressNamesUser);
    }
    let malformed = || Error::AddressMalformed(text.to_owned());
    let url = Url::parse(text.trim()).map_err(|_| malformed())?;
    let is_plain = url.query().is_none() && url.fragment().is_none();
    if url.scheme() != "https" || !is_plain {
        return Err(malformed());
    }
    Ok(url.as_str().trim_end_matches('/').to_owned())
}

/// Sends a request to the identity provider, and receives the response.
pub(super) async fn receive_from_provider(
    request: RequestBuilder,
    url: &str,
) -> Result<Response, Error> {
    let request = request.header(ACCEPT, JSON).timeout(PROVIDER_TIMEOUT);
    receive(request, url, PROVIDER_RESPONSE_BYTES_MAX).await
}

async fn receive(
    request: RequestBuilder,
    server: &str,
    bytes_max: usize,
) -> Result<Response, Error> {
    let unreachable = |cause: reqwest::Error| {
        let server = server.to_owned();
        let root = root_cause(&cause);
        // HTTP/2 passes on only the message of a TLS error.
        let alert = root.strip_prefix("received fatal alert: ");
        if let Some(reason) = alert.and_then(refusal) {
            return Error::ClientCertificateRefused { server, reason };
        }
        let loss = alert.map_or_else(|| loss(&cause), |_| Loss::Lasting);
        Error::Unreachable {
            server,
            loss,
            cause: root,
        }
    };
    let mut response = request.send().await.map_err(unreachable)?;
    let status = response.status();
    let bytes_max = if status.is_success() {
        bytes_max
    } else {
        ERROR_BYTES_MAX
    };
    let retry_after = retry_after(&response);
    let mut body = Zeroizing::new(Vec::new());
    while let Some(chunk) = response.chunk().await.map_err(unreachable)? {
        if body.len() + chunk.len() > bytes_max {
            if status.is_success() {
                return Err(Error::ResponseTooLarge(bytes_max));
            }
            body.clear();
            break;
        }
        body.extend_from_slice(&chunk);
    }
    Ok(Response {
        status: status.as_u16(),
        retry_after,
        body,
    })
}

fn retry_after(response: &reqwest::Response) -> Option<Duration> {
    let header = response.headers().get(RETRY_AFTER)?.to_str().ok()?;
    parse_retry_after(header, SystemTime::now())
}

fn loss(cause: &reqwest::Error) -> Loss {
    let is_malformed = || cause_of::<hyper::Error>(cause).is_some_and(hyper::Error::is_parse);
    if cause_of::<rustls::Error>(cause).is_some() {
        Loss::Lasting
    } else if cause.is_connect() {
        Loss::NotConnected
    } else if cause.is_timeout() || is_malformed() {
        Loss::Lasting
    } else {
        Loss::Lost
    }
}

/// Returns the cause of this type, if there is one.
fn cause_of<'a, E: StdError + 'static>(error: &'a (dyn StdError + 'static)) -> Option<&'a E> {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(error) = error.downcast_ref() {
            return Some(error);
        }
        // `source` skips the error that an `io::Error` wraps.
        let inner = error.downcast_ref().and_then(io::Error::get_ref);
        cause = inner.map_or_else(
            || error.source(),
            |inner| Some(inner as &(dyn StdError + 'static)),
        );
    }
    None
}

/// Returns the reason if a peer's alert is about the client certificate.
fn refusal(alert: &str) -> Option<&'static str> {
    Some(match alert {
        "UnknownCA" => "refuses the client certificate: it does not trust the CA that signed it",
        "CertificateExpired" => "refuses the client certificate: it has expired",
        "CertificateRevoked" => "refuses the client certificate: it is revoked",
        "CertificateRequired" => "requires a client certificate",
        // `DecryptError`: a trusted CA has the name of the issuer, but another key.
        "AccessDenied"
        | "BadCertificate"
        | "CertificateUnknown"
        | "DecryptError"
        | "UnsupportedCertificate" => "refuses the client certificate",
        _ => return None,
    })
}

/// Returns the reason why there is no response. Omits the outer errors, which only name layers of the HTTP client.
fn root_cause(error: &reqwest::Error) -> String {
    match cause_of(error) {
        Some(rustls::Error::InvalidMessage(InvalidMessage::InvalidContentType)) => {
            return "it does not speak TLS; check the port".to_owned();
        }
        Some(rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer)) => {
            return UNTRUSTED.to_owned();
        }
        _ => {}
    }
    // The outermost error contains the URL.
    let Some(mut root) = error.source() else {
        return "the request failed".to_owned();
    };
    while let Some(cause) = root.source() {
        root = cause;
    }
    root.to_string()
}

/// Returns the reason why the HTTP client can't be built. Omits the message of the outer error, which is always `builder error`.
pub(super) fn build_error(error: &reqwest::Error) -> String {
    let Some(cause) = error.source() else {
        return error.to_string();
    };
    match cause.downcast_ref::<rustls::Error>() {
        Some(rustls::Error::InconsistentKeys(_)) => {
            "the private key does not match the client certificate".to_owned()
        }
        _ => cause.to_string(),
    }
}

const JSON: &str = "application/json";

/// The message of a server in read-only mode, which lasts until an administrator ends it.
const READ_ONLY: &str = "the server is in read-only mode and rejects writes";

/// The cause if no trusted CA signed the server's certificate.
pub(crate) const UNTRUSTED: &str = "its certificate is signed by a CA that is not trusted";

/// The timeout of a whole response of the identity provider.
const PROVIDER_TIMEOUT: Duration = Duration::from_secs(30);

/// The largest error response, in bytes. The message of a larger response is ignored.
const ERROR_BYTES_MAX: usize = 1024 * 1024;

/// The largest response of an identity provider, in bytes.
const PROVIDER_RESPONSE_BYTES_MAX: usize = 1024 * 1024;

/// The largest response, in bytes: enough for the names of a million credentials of 255 bytes each.
const RESPONSE_BYTES_MAX: usize = 512 * 1024 * 1024;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Client;

    #[test]
    fn query_parameters_are_encoded() {
        let call = Call::new(Method::GET, "/api/v1/data")
            .query("name", "/a b/[c]&d=é")
            .query_if("versions", None)
            .query_if("current", Some("true"));
        assert_eq!(
            call.path,
            "/api/v1/data?name=%2Fa+b%2F%5Bc%5D%26d%3D%C3%A9&current=true"
        );
    }

    #[test]
    fn addresses_are_https_and_lose_their_trailing_slash() {
        for (text, expected) in [
            ("https://a.example:8844", Some("https://a.example:8844")),
            (" https://a.example/ ", Some("https://a.example")),
            ("https://a.example/uaa/", Some("https://a.example/uaa")),
            ("http://a.example", None),
            ("a.example:8844", None),
            ("https://A.Example:443/", Some("https://a.example")),
            ("https://a.example?x=y", None),
            ("", None),
        ] {
            assert_eq!(address(text).ok().as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn errors_omit_addresses_with_user_information() {
        for text in [
            "https://user:hunter2@a.example",
            "https://hunter2@a.example",
            "http://user:hunter2@a.example:8844/x",
            "user:hunter2@a.example",
            "https://user:hunter2@a.example:port",
            "https://user:hunter2#@a.example",
        ] {
            let refused = address(text).unwrap_err();
            assert!(!refused.to_string().contains("hunter2"), "{refused}");
            assert!(!format!("{refused:?}").contains("hunter2"), "{refused:?}");
        }
        let builder = Client::builder("https://user:hunter2@a.example");
        assert!(!format!("{builder:?}").contains("hunter2"));
    }
}
