//! Requests to the token endpoint, with the client's authentication (RFC 6749, sections 2.3 and 3.2).

use serde::Deserialize;

use super::{
    IdentityProvider, Tokens,
    discovery::{Endpoints, SecretMethod},
};
use crate::{Secret, client::Error, client::transport::Response};

/// A form that is sent to an endpoint.
pub(super) type Form<'a> = Vec<(&'a str, &'a str)>;

/// A client as it identifies itself to the provider.
#[derive(Clone, Copy)]
pub(super) struct ClientIdentity<'a> {
    pub(super) id: &'a str,
    /// The secret of a confidential client.
    pub(super) secret: Option<&'a Secret>,
}

impl<'a> ClientIdentity<'a> {
    /// A client with a secret.
    pub(super) fn confidential(id: &'a str, secret: &'a Secret) -> Self {
        let secret = Some(secret);
        Self { id, secret }
    }
}

/// A successful response of the token endpoint.
#[derive(Deserialize)]
struct TokenResponse {
    access_token: Secret,
    token_type: Option<String>,
    refresh_token: Option<Secret>,
}

impl IdentityProvider<'_> {
    /// Requests tokens.
    ///
    /// # Errors
    /// When the provider refuses, or returns tokens that are not bearer tokens.
    pub(super) async fn request_tokens(
        &self,
        endpoints: &Endpoints,
        client: ClientIdentity<'_>,
        form: Form<'_>,
    ) -> Result<Tokens, Error> {
        let mut form = form;
        if endpoints.is_uaa {
            form.push(("response_type", "token"));
        }
        let response = self
            .post(endpoints, &endpoints.token, client, &form)
            .await?;
        let malformed = |reason: String| Error::ProviderMalformed {
            url: endpoints.token.clone(),
            reason,
        };
        let response: TokenResponse = keywright_json::read_bytes(&response.body)
            .map_err(|cause| malformed(cause.to_string()))?;
        let is_bearer = response
            .token_type
            .is_none_or(|token_type| token_type.eq_ignore_ascii_case("bearer"));
        if !is_bearer {
            return Err(malformed("the tokens are not bearer tokens".to_owned()));
        }
        Ok(Tokens::new(response.access_token, response.refresh_token))
    }

    /// Sends a form to an endpoint that authenticates clients.
    ///
    /// A provider lists the supported methods to send a secret, but may require a specific one from each client. If it refuses one
    /// with `invalid_client`, the client tries the next.
    pub(super) async fn post(
        &self,
        endpoints: &Endpoints,
        url: &str,
        client: ClientIdentity<'_>,
        form: &[(&str, &str)],
    ) -> Result<Response, Error> {
        let Some(secret) = client.secret else {
            let mut form = [form, &[("client_id", client.id)]].concat();
            if endpoints.is_uaa {
                form.push(("client_secret", ""));
            }
            return self
                .send(|| self.transport.post_form(url, &form, None))
                .await;
        };
        let mut refused = Error::ProviderMalformed {
            url: url.to_owned(),
            reason: "it supports neither client_secret_basic nor client_secret_post".to_owned(),
        };
        for method in &endpoints.secret_methods {
            let response = match method {
                SecretMethod::Basic => {
                    let basic = Some((client.id, secret));
                    self.send(|| self.transport.post_form(url, form, basic))
                        .await
                }
                SecretMethod::Post => {
                    let own = [("client_id", client.id), ("client_secret", secret.expose())];
                    let form = [form, &own].concat();
                    self.send(|| self.transport.post_form(url, &form, None))
                        .await
                }
            };
            match response {
                Err(Error::LoginRefused(refusal)) if refusal.error == "invalid_client" => {
                    refused = Error::LoginRefused(refusal);
                }
                response => return response,
            }
        }
        Err(refused)
    }
}
