//! Login in the browser: the authorization code grant with PKCE (RFC 6749, RFC 7636, RFC 8252).

use std::time::Duration;

use aws_lc_rs::{
    digest::{SHA256, digest},
    rand,
};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use reqwest::Url;

use super::{IdentityProvider, Tokens, UserAction, discovery::Endpoints, redirect::Redirect};
use crate::{Secret, client::Error};

impl IdentityProvider<'_> {
    /// Shows the login page and exchanges the code from the browser's redirection for tokens.
    ///
    /// # Errors
    /// When the provider has no authorization endpoint or refuses the login, or no redirection arrives in time.
    pub(super) async fn tokens_by_browser(&self, endpoints: &Endpoints) -> Result<Tokens, Error> {
        let page = endpoints.authorization.as_ref();
        let page = page.ok_or(Error::GrantUnsupported("authorization_endpoint"))?;
        if endpoints.lacks_s256 {
            return Err(Error::GrantUnsupported(
                "code_challenge_methods_supported: S256",
            ));
        }
        let (state, verifier) = (random()?, random()?);
        let failed = |cause: std::io::Error| {
            Error::Configuration(format!("listening on 127.0.0.1 for the browser: {cause}"))
        };
        let redirect = Redirect::listen(state.expose().to_owned())
            .await
            .map_err(failed)?;
        let redirect_uri = redirect.uri().map_err(failed)?;
        let challenge = digest(&SHA256, verifier.expose().as_bytes());
        let challenge = URL_SAFE_NO_PAD.encode(challenge);
        let mut url = Url::parse(page).map_err(|_| Error::AddressMalformed(page.clone()))?;
        url.query_pairs_mut()
            .append_pair("response_type", "code")
            .append_pair("client_id", self.public_client().id)
            .append_pair("redirect_uri", &redirect_uri)
            .append_pair("state", state.expose())
            .append_pair("code_challenge", &challenge)
            .append_pair("code_challenge_method", "S256")
            .extend_pairs(self.options.requested());
        self.report(&UserAction::OpenPage { page: url.into() });
        let response = redirect.response(WAIT_MAX).await.map_err(failed)?;
        let response = response.ok_or(Error::LoginTimedOut)?;
        check_issuer(endpoints, response.get("iss"))?;
        if let Some(error) = response.get("error") {
            let description = response.get("error_description");
            return Err(Error::LoginDenied(description.unwrap_or(error).to_owned()));
        }
        let code = response.get("code").unwrap_or_default();
        let form = [
            ("grant_type", "authorization_code"),
            ("code", code),
            ("redirect_uri", &redirect_uri),
            ("code_verifier", verifier.expose()),
        ];
        let form = [&form[..], &self.options.resource()].concat();
        self.request_tokens(endpoints, self.public_client(), form)
            .await
    }
}

/// Checks the issuer in the response, so that the code is only sent to the provider that issued it (RFC 9207).
fn check_issuer(endpoints: &Endpoints, named: Option<&str>) -> Result<(), Error> {
    let is_checked = match named {
        Some(named) => endpoints.issuer.as_deref() == Some(named),
        None => !endpoints.names_issuer,
    };
    if is_checked {
        Ok(())
    } else {
        Err(Error::LoginDenied(
            "the response in the browser is not from this identity provider: its parameter iss is missing or different"
                .to_owned(),
        ))
    }
}

/// 32 random bytes in base64url: 43 characters, as RFC 7636 recommends for a code verifier.
fn random() -> Result<Secret, Error> {
    let mut bytes = [0; 32];
    rand::fill(&mut bytes)
        .map_err(|_| Error::Configuration("the system has no randomness".to_owned()))?;
    Ok(Secret::new(URL_SAFE_NO_PAD.encode(bytes)))
}

/// The longest wait for the browser.
const WAIT_MAX: Duration = Duration::from_mins(10);
