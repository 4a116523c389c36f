//! The server's TLS: its certificate and the CAs of client certificates.
//!
//! The files are read again at each SIGHUP: later handshakes use their new contents. Open connections continue, unless the new CAs
//! do not verify their client certificate. If the files are invalid, the previous contents stay in use.

pub(crate) mod certificates;

use std::{
    future::pending,
    io,
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use chrono::{DateTime, Utc};
use keywright_core::certificate::ClientCertificateFacts;
use keywright_crypto::client_certificate_facts;
use rustls::{
    ServerConfig, ServerConnection,
    pki_types::{CertificateDer, UnixTime},
    server::{NoServerSessionStorage, WebPkiClientVerifier, danger::ClientCertVerifier},
    time_provider::TimeProvider,
};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    sync::watch,
    task::spawn_blocking,
    time::timeout,
};
use tokio_rustls::{TlsAcceptor, server::TlsStream};

use self::certificates::{
    ClientVerifier, pair_refused, read_certificates, read_client_authorities, read_private_key,
};
use crate::{
    config::TlsConfig,
    process,
    started::{StartupContext, StartupError},
};

/// The TLS configuration for handshakes.
pub(crate) struct Tls {
    files: TlsConfig,
    current: watch::Sender<Current>,
}

/// The contents of the files.
#[derive(Clone)]
struct Current {
    server: Arc<ServerConfig>,
    /// `None` if no client certificates are requested.
    client_verifier: Option<Arc<ClientVerifier>>,
}

impl Current {
    /// Verifies the chain of a client certificate. Returns the time at which the first CA certificate of the chain expires, or
    /// `None` if the chain is not valid.
    fn chain_expires_at(&self, chain: &[CertificateDer<'_>]) -> Option<DateTime<Utc>> {
        let (certificate, intermediates) = chain.split_first()?;
        let verifier = self.client_verifier.as_ref()?;
        let now = TimeFrom1970.current_time()?;
        verifier.verify(certificate, intermediates, now).ok()
    }
}

impl Tls {
    pub(crate) fn load(files: &TlsConfig) -> Result<Self, StartupError> {
        Ok(Self {
            files: files.clone(),
            current: watch::Sender::new(read(files)?),
        })
    }

    /// Performs a handshake. If it fails, the client gets time to read the alert.
    pub(crate) async fn accept<S>(&self, stream: S) -> io::Result<TlsStream<S>>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let acceptor = TlsAcceptor::from(self.current().server);
        match acceptor.accept(stream).into_fallible().await {
            Ok(stream) => Ok(stream),
            Err((cause, stream)) => {
                close_after_alert(stream).await;
                Err(cause)
            }
        }
    }

    /// Returns the facts of the client certificate, if the client presented one. A certificate that can't be parsed identifies
    /// no client. Its expiry is the earliest in its chain: the connection may stay open longer.
    pub(crate) fn client_certificate(
        &self,
        session: &ServerConnection,
    ) -> Option<Arc<ClientCertificateFacts>> {
        let chain = session.peer_certificates()?;
        let mut facts = client_certificate_facts(chain.first()?).unwrap_or_default();
        // If the chain is no longer valid, it has expired since the handshake.
        let chain_expires_at = self.current().chain_expires_at(chain);
        let chain_expires_at = chain_expires_at.unwrap_or(DateTime::UNIX_EPOCH);
        facts.expires_at = facts.expires_at.min(chain_expires_at);
        Some(Arc::new(facts))
    }

    /// Returns a future that completes when the files are reloaded and the new CAs do not verify the client certificate of the
    /// session. Without a client certificate, it never completes.
    pub(crate) fn client_rejected(
        &self,
        session: &ServerConnection,
    ) -> impl Future<Output = ()> + use<> {
        let mut current = self.current.subscribe();
        let chain = session.peer_certificates().map(<[_]>::to_vec);
        async move {
            let Some(chain) = chain else {
                return pending().await;
            };
            while current.changed().await.is_ok() {
                let reloaded = current.borrow_and_update().clone();
                if reloaded.chain_expires_at(&chain).is_none() {
                    return;
                }
            }
        }
    }

    fn current(&self) -> Current {
        self.current.borrow().clone()
    }

    /// Reads the files again at each SIGHUP.
    pub(crate) fn reload_on_hangup(self: &Arc<Self>) -> Result<(), StartupError> {
        let mut hangup = process::hangup_signal()?;
        let tls = Arc::clone(self);
        tokio::spawn(async move {
            while hangup.recv().await.is_some() {
                let tls = Arc::clone(&tls);
                if spawn_blocking(move || tls.reload()).await.is_err() {
                    tracing::error!("the task that reloads the TLS files failed");
                }
            }
        });
        Ok(())
    }

    fn reload(&self) {
        match read(&self.files) {
            Ok(current) => {
                self.current.send_replace(current);
                tracing::info!("reloaded the TLS files: new connections use them");
            }
            Err(refused) => {
                tracing::error!(
                    error = refused.with_causes(),
                    "could not reload the TLS files: new connections use the previous ones"
                );
            }
        }
    }
}

/// Closes a connection after an alert. The client may already be sending its request; closing with unread data would
/// reset the connection, and the client might not receive the alert.
async fn close_after_alert<S: AsyncRead + AsyncWrite + Unpin>(mut stream: S) {
    let unread = async {
        stream.shutdown().await?;
        tokio::io::copy(&mut stream.take(UNREAD_BYTES_MAX), &mut tokio::io::sink()).await
    };
    // The alert is sent; a failure from here on does not matter.
    let _ = timeout(ALERT_TIME_MAX, unread).await;
}

/// The time for handshakes. A clock before 1970 counts as 1970, so that a response can report it.
#[derive(Debug)]
struct TimeFrom1970;

impl TimeProvider for TimeFrom1970 {
    fn current_time(&self) -> Option<UnixTime> {
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH);
        Some(UnixTime::since_unix_epoch(since_1970.unwrap_or_default()))
    }
}

/// Reads the files, for TLS 1.2 and 1.3 with HTTP/2 and HTTP/1.1.
fn read(files: &TlsConfig) -> Result<Current, StartupError> {
    let chain = read_certificates("the TLS certificate", &files.certificate)?;
    let key = read_private_key(&files.private_key)?;
    let authorities = files.client_authorities.as_deref();
    let authorities = authorities
        .map(|file| read_client_authorities(file, process::now()))
        .transpose()?;
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let algorithms = provider.signature_verification_algorithms;
    let client_verifier =
        authorities.map(|authorities| Arc::new(ClientVerifier::new(authorities, algorithms)));
    let verifier: Arc<dyn ClientCertVerifier> = match &client_verifier {
        Some(verifier) => Arc::<ClientVerifier>::clone(verifier),
        None => WebPkiClientVerifier::no_client_auth(),
    };
    let mut server = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .while_doing("choosing TLS versions")?
        .with_client_cert_verifier(verifier)
        .with_single_cert(chain, key)
        .map_err(|cause| pair_refused(files, &cause))?;
    server.time_provider = Arc::new(TimeFrom1970);
    server.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    if client_verifier.is_some() {
        // A resumed session would reuse its client certificate without verifying it again, even if it has expired since.
        server.session_storage = Arc::new(NoServerSessionStorage {});
        server.send_tls13_tickets = 0;
    }
    Ok(Current {
        server: Arc::new(server),
        client_verifier,
    })
}

/// Maximum time for a client to read an alert and close the connection.
const ALERT_TIME_MAX: Duration = Duration::from_secs(2);

/// Maximum number of bytes read from the client meanwhile.
const UNREAD_BYTES_MAX: u64 = 64 * 1024;
