//! Sends requests and reads answers, and knows nothing of what they mean.

use std::{
    error::Error as StdError,
    io,
    time::{Duration, SystemTime},
};

use form_urlencoded::byte_serialize;
use reqwest::{
    Method, Response, StatusCode, Url,
    header::{ACCEPT, CONTENT_TYPE, RETRY_AFTER},
};
use zeroize::Zeroizing;

use super::{Call, Error, Loss, Refusal, wait};
use crate::Secret;

/// The connections to a server and its identity provider.
#[derive(Debug)]
pub(super) struct Transport {
    http: reqwest::Client,
    server: String,
}

/// An answer, read whole.
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) retry_after: Option<Duration>,
    pub(super) body: Zeroizing<Vec<u8>>,
}

impl Transport {
    /// A transport to the server at an address.
    ///
    /// # Errors
    /// When it is no address, or not one of https.
    pub(super) fn new(http: reqwest::Client, server: &str) -> Result<Self, Error> {
        let server = address(server)?;
        Ok(Self { http, server })
    }

    /// The server's address, without a slash at its end.
    pub(super) fn server(&self) -> &str {
        &self.server
    }

    /// Sends a request of the API.
    pub(super) async fn send(&self, call: &Call, token: Option<&Secret>) -> Result<Answer, Error> {
        let mut request = self
            .http
            .request(call.method.clone(), format!("{}{}", self.server, call.path))
            .header(ACCEPT, JSON)
            .header(CONTENT_TYPE, JSON);
        if call.needs_login
            && let Some(token) = token
        {
            request = request.bearer_auth(token.expose());
        }
        if let Some(body) = &call.body {
            request = request.body(body.to_vec());
        }
        answer(request, &self.server, ANSWER_BYTES_MAX).await
    }

    /// Asks the identity provider for a document.
    pub(super) async fn get(&self, url: &str) -> Result<Answer, Error> {
        let request = self.http.get(url).header(ACCEPT, JSON);
        provider_answer(request, url).await
    }

    /// Sends a form to the identity provider, with a client's id and secret in the `Authorization` header if they are given.
    pub(super) async fn post_form(
        &self,
        url: &str,
        form: &[(&str, &str)],
        basic: Option<(&str, &Secret)>,
    ) -> Result<Answer, Error> {
        let body = form_urlencoded::Serializer::new(String::new())
            .extend_pairs(form)
            .finish();
        let mut request = self
            .http
            .post(url)
            .header(ACCEPT, JSON)
            .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
            .body(body);
        if let Some((id, secret)) = basic {
            // Both are encoded, so that an id can have a colon (RFC 6749, section 2.3.1).
            let encoded = |text: &str| byte_serialize(text.as_bytes()).collect::<String>();
            request = request.basic_auth(encoded(id), Some(encoded(secret.expose())));
        }
        provider_answer(request, url).await
    }

    /// Has the identity provider delete something.
    pub(super) async fn delete(&self, url: &str, token: &Secret) -> Result<Answer, Error> {
        let request = self.http.request(Method::DELETE, url);
        let request = request.bearer_auth(token.expose());
        provider_answer(request, url).await
    }
}

impl Answer {
    pub(super) fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    pub(super) fn is_unavailable(&self) -> bool {
        self.status == StatusCode::SERVICE_UNAVAILABLE.as_u16()
    }

    /// Whether a client should renew its token: whatever the status, the code says it.
    pub(super) fn says_that_the_token_has_expired(&self) -> bool {
        self.status >= 400 && Refusal::read(self.status, &self.body).error == "access_token_expired"
    }
}

/// An address as it is used: of https, without a slash at its end, in the one form that addresses of the same server have.
pub(crate) fn address(text: &str) -> Result<String, Error> {
    // Also where the rest of it is malformed, so that nothing could tell a password from a host.
    if text.contains('@') {
        return Err(Error::AddressNamesUser);
    }
    let malformed = || Error::AddressMalformed(text.to_owned());
    let url = Url::parse(text.trim()).map_err(|_| malformed())?;
    let is_plain = url.query().is_none() && url.fragment().is_none();
    if url.scheme() != "https" || !url.has_host() || !is_plain {
        return Err(malformed());
    }
    Ok(url.as_str().trim_end_matches('/').to_owned())
}

/// Sends a request to the identity provider.
async fn provider_answer(request: reqwest::RequestBuilder, url: &str) -> Result<Answer, Error> {
    let request = request.timeout(PROVIDER_TIMEOUT);
    answer(request, url, PROVIDER_ANSWER_BYTES_MAX).await
}

async fn answer(
    request: reqwest::RequestBuilder,
    server: &str,
    bytes_max: usize,
) -> Result<Answer, Error> {
    let unreachable = |cause: reqwest::Error| Error::Unreachable {
        server: server.to_owned(),
        loss: loss(&cause),
        cause: causes(&cause.without_url()),
    };
    let mut response = request.send().await.map_err(unreachable)?;
    let status = response.status().as_u16();
    let retry_after = asked_patience(&response);
    let mut body = Zeroizing::new(Vec::new());
    while let Some(chunk) = response.chunk().await.map_err(unreachable)? {
        if body.len() + chunk.len() > bytes_max {
            return Err(Error::AnswerTooLarge(bytes_max));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(Answer {
        status,
        retry_after,
        body,
    })
}

fn asked_patience(response: &Response) -> Option<Duration> {
    let header = response.headers().get(RETRY_AFTER)?.to_str().ok()?;
    wait::retry_after(header, SystemTime::now())
}

fn loss(cause: &reqwest::Error) -> Loss {
    if is_of_tls(cause) {
        Loss::Lasting
    } else if cause.is_connect() {
        Loss::NotConnected
    } else if cause.is_timeout() {
        Loss::Lasting
    } else {
        Loss::Lost
    }
}

/// Whether TLS itself refused the other side, or was refused by it.
fn is_of_tls(error: &(dyn StdError + 'static)) -> bool {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if error.is::<rustls::Error>() {
            return true;
        }
        // The error that one of input and output was made of is not its source.
        let made_of = error.downcast_ref().and_then(io::Error::get_ref);
        cause = made_of.map_or_else(
            || error.source(),
            |made_of| Some(made_of as &(dyn StdError + 'static)),
        );
    }
    false
}

/// What an error says, and what each of its causes says, without what was said already.
fn causes(error: &dyn StdError) -> String {
    let mut words = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !words.contains(&more) {
            words = format!("{words}: {more}");
        }
        cause = error.source();
    }
    words
}

const JSON: &str = "application/json";

/// How long a whole answer of the identity provider may take.
const PROVIDER_TIMEOUT: Duration = Duration::from_secs(30);

/// The largest response of an identity provider, in bytes.
const PROVIDER_ANSWER_BYTES_MAX: usize = 1024 * 1024;

/// The largest answer that is taken: the names of a million credentials, of 255 bytes each.
const ANSWER_BYTES_MAX: usize = 512 * 1024 * 1024;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Client;

    #[test]
    fn addresses_are_of_https_and_lose_the_slash_at_their_end() {
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
    fn what_an_address_says_of_a_user_is_not_repeated() {
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
