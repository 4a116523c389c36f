//! Login with a code that the user enters on another device (RFC 8628).

use std::time::Duration;

use serde::Deserialize;
use tokio::time::{Instant, sleep};

use super::{
    IdentityProvider, Tokens, UserAction,
    discovery::Endpoints,
    token_request::{ClientIdentity, Form},
};
use crate::{Secret, client::Error};

/// A response of the device authorization endpoint.
#[derive(Deserialize)]
struct DeviceAuthorization {
    device_code: Secret,
    user_code: String,
    verification_uri: String,
    verification_uri_complete: Option<String>,
    expires_in: u64,
    interval: Option<u64>,
}

impl IdentityProvider<'_> {
    /// Requests a code, shows it, and polls until the user has entered it.
    ///
    /// # Errors
    /// When the provider has no device authorization endpoint, the user refuses, or the code expires.
    pub(super) async fn tokens_by_device(&self, endpoints: &Endpoints) -> Result<Tokens, Error> {
        let url = endpoints.device_authorization.as_ref();
        let url = url.ok_or(Error::GrantUnsupported("device_authorization_endpoint"))?;
        let client = self.public_client();
        let form = self.options.requested();
        let response = self.post(endpoints, url, client, &form).await?;
        let authorization: DeviceAuthorization = keywright_json::read_bytes(&response.body)
            .map_err(|cause| Error::ProviderMalformed {
                url: url.clone(),
                reason: cause.to_string(),
            })?;
        let expires_in = Duration::from_secs(authorization.expires_in).min(WAIT_MAX);
        let expires_at = Instant::now() + expires_in;
        let interval = authorization.interval.map_or(INTERVAL, Duration::from_secs);
        self.report(&UserAction::EnterCode {
            page: authorization.verification_uri,
            page_with_code: authorization.verification_uri_complete,
            code: authorization.user_code,
            expires_in,
        });
        let form = [
            ("grant_type", "urn:ietf:params:oauth:grant-type:device_code"),
            ("device_code", authorization.device_code.expose()),
        ];
        let form = [&form[..], &self.options.resource()].concat();
        self.poll(endpoints, client, &form, interval, expires_at)
            .await
    }

    async fn poll(
        &self,
        endpoints: &Endpoints,
        client: ClientIdentity<'_>,
        form: &Form<'_>,
        interval: Duration,
        expires_at: Instant,
    ) -> Result<Tokens, Error> {
        let mut interval = interval.clamp(INTERVAL_MIN, WAIT_MAX);
        loop {
            if Instant::now() + interval > expires_at {
                return Err(Error::LoginTimedOut);
            }
            sleep(interval).await;
            match self.request_tokens(endpoints, client, form.clone()).await {
                Err(Error::LoginRefused(refusal)) => match refusal.error.as_str() {
                    "authorization_pending" => {}
                    "slow_down" => interval += SLOWER_BY,
                    "expired_token" => return Err(Error::LoginTimedOut),
                    _ => return Err(Error::LoginRefused(refusal)),
                },
                response => return response,
            }
        }
    }
}

/// The default interval between polls (RFC 8628, section 3.2).
const INTERVAL: Duration = Duration::from_secs(5);

/// The shortest interval between polls, regardless of the provider's.
const INTERVAL_MIN: Duration = Duration::from_secs(1);

/// The increase of the interval after `slow_down` (RFC 8628, section 3.5).
const SLOWER_BY: Duration = Duration::from_secs(5);

/// The longest wait for a code, regardless of its expiry.
const WAIT_MAX: Duration = Duration::from_mins(30);
