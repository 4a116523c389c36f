//! How a client is made.

use std::{fmt, sync::Arc, time::Duration};

use reqwest::{Certificate, Identity, redirect::Policy, tls};
use zeroize::Zeroizing;

use super::{
    Client, Error, Grant, LoginOptions, Shared, Tokens, UserAction, Wait,
    identity::UserActions,
    login::{Login, Renewed},
    transport::Transport,
    wait::{Notice, RETRIES_DEFAULT, Waits},
};

/// A client that is not made yet.
#[must_use]
pub struct ClientBuilder {
    server: String,
    authorities_pem: Vec<Vec<u8>>,
    identity_pem: Option<Zeroizing<Vec<u8>>>,
    grant: Option<Grant>,
    login_options: LoginOptions,
    user_actions: Option<UserActions>,
    tokens: Option<Tokens>,
    renewed: Option<Renewed>,
    notice: Option<Notice>,
    retries_max: u32,
}

impl ClientBuilder {
    pub(super) fn new(server: &str) -> Self {
        Self {
            server: server.to_owned(),
            authorities_pem: Vec::new(),
            identity_pem: None,
            grant: None,
            login_options: LoginOptions::default(),
            user_actions: None,
            tokens: None,
            renewed: None,
            notice: None,
            retries_max: RETRIES_DEFAULT,
        }
    }

    /// Trusts these authorities, PEM, one certificate or more, and none of the system's. It can be called again with more.
    /// They vouch for the server and for its identity provider.
    pub fn trusting_only(mut self, authorities_pem: impl Into<Vec<u8>>) -> Self {
        self.authorities_pem.push(authorities_pem.into());
        self
    }

    /// Presents a client certificate: its chain, its own first, and its private key, both PEM.
    pub fn client_certificate(mut self, chain_pem: &[u8], private_key_pem: &[u8]) -> Self {
        let mut identity = Zeroizing::new(Vec::with_capacity(
            chain_pem.len() + private_key_pem.len() + 1,
        ));
        identity.extend_from_slice(chain_pem);
        identity.push(b'\n');
        identity.extend_from_slice(private_key_pem);
        self.identity_pem = Some(identity);
        self
    }

    /// Logs in by this grant, with the first request and whenever the login has expired.
    pub fn grant(mut self, grant: Grant) -> Self {
        self.grant = Some(grant);
        self
    }

    /// Requests tokens with these options.
    pub fn login_options(mut self, options: LoginOptions) -> Self {
        self.login_options = options;
        self
    }

    /// Reports the steps that a user must take to complete a login by [`Grant::DeviceCode`] or [`Grant::AuthorizationCode`].
    pub fn on_user_action(mut self, report: impl Fn(&UserAction) + Send + Sync + 'static) -> Self {
        self.user_actions = Some(Box::new(report));
        self
    }

    /// Begins with tokens that are there already.
    pub fn tokens(mut self, tokens: Tokens) -> Self {
        self.tokens = Some(tokens);
        self
    }

    /// Is told of each new pair of tokens, so that they can be kept.
    pub fn on_new_tokens(mut self, told: impl Fn(&Tokens) + Send + Sync + 'static) -> Self {
        self.renewed = Some(Box::new(told));
        self
    }

    /// Is told of each wait for a server that is not available.
    pub fn on_wait(mut self, told: impl Fn(Wait) + Send + Sync + 'static) -> Self {
        self.notice = Some(Box::new(told));
        self
    }

    /// Sends a request so often again at most while the server answers that it is not available (503), or no connection is
    /// had; one that only reads, also when the connection is lost before the answer. Without this, 4 times.
    ///
    /// A write that was answered by 503 may have been done all the same, when the server's database did not say. Done again,
    /// it adds another version. With 0, nothing is sent again.
    pub fn retries_max(mut self, retries_max: u32) -> Self {
        self.retries_max = retries_max;
        self
    }

    /// Makes the client. Nothing is sent yet.
    ///
    /// Connections go through the proxy that the variables `HTTPS_PROXY`, `ALL_PROXY` and `NO_PROXY` name, in either case.
    /// Installs the process's TLS provider (aws-lc) if there is none so far.
    ///
    /// # Errors
    /// When the address, the authorities or the client certificate can't be used.
    pub fn build(self) -> Result<Client, Error> {
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let mut http = reqwest::Client::builder()
            .https_only(true)
            .redirect(Policy::none())
            .tls_version_min(tls::Version::TLS_1_2)
            .user_agent(concat!("keywright/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(CONNECT_TIMEOUT)
            .timeout(ANSWER_TIMEOUT);
        if !self.authorities_pem.is_empty() {
            http = http.tls_certs_only(authorities(&self.authorities_pem)?);
        }
        if let Some(identity) = &self.identity_pem {
            let identity =
                Identity::from_pem(identity).map_err(|_| Error::ClientCertificateMalformed)?;
            http = http.identity(identity);
        }
        let http = http
            .build()
            .map_err(|cause| Error::Configuration(cause.to_string()))?;
        let shared = Shared {
            transport: Transport::new(http, &self.server)?,
            login: Login::new(self.grant, self.tokens, self.renewed),
            waits: Waits {
                retries_max: self.retries_max,
                notice: self.notice,
            },
            login_options: self.login_options,
            user_actions: self.user_actions,
        };
        Ok(Client {
            shared: Arc::new(shared),
        })
    }
}

impl fmt::Debug for ClientBuilder {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("ClientBuilder")
            .finish_non_exhaustive()
    }
}

fn authorities(bundles: &[Vec<u8>]) -> Result<Vec<Certificate>, Error> {
    let mut certificates = Vec::new();
    for bundle in bundles {
        let found =
            Certificate::from_pem_bundle(bundle).map_err(|_| Error::AuthoritiesMalformed)?;
        if found.is_empty() {
            return Err(Error::AuthoritiesMalformed);
        }
        certificates.extend(found);
    }
    Ok(certificates)
}

/// How long it may take until a connection is there.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a whole answer may take. The regeneration of everything that an authority signed takes a while.
const ANSWER_TIMEOUT: Duration = Duration::from_mins(5);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn authorities_and_client_certificates_must_be_pem() {
        for pem in ["", "no certificate"] {
            let refused = Client::builder("https://a.example").trusting_only(pem);
            assert!(matches!(refused.build(), Err(Error::AuthoritiesMalformed)));
        }
        let refused = Client::builder("https://a.example").client_certificate(b"x", b"y");
        assert!(matches!(
            refused.build(),
            Err(Error::ClientCertificateMalformed)
        ));
    }
}
