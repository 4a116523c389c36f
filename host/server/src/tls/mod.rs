//! The server's TLS: its certificate and the CAs of client certificates.
//!
//! The files are read again at each SIGHUP: later handshakes use their new contents. Open connections continue, unless the new CAs
//! do not verify their client certificate. If the files are invalid, the previous contents stay in use.

pub(crate) mod certificates;

use std::{
    io,
    path::{Path, PathBuf},
    pin::Pin,
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use chrono::{DateTime, Utc};
use keywright_core::certificate::ClientCertificateFacts;
use keywright_crypto::client_certificate_facts;
use rustls::{
    ServerConfig, ServerConnection,
    crypto::{CryptoProvider, GetRandomFailed, SecureRandom},
    pki_types::{CertificateDer, UnixTime},
    server::{NoServerSessionStorage, WebPkiClientVerifier, danger::ClientCertVerifier},
    time_provider::TimeProvider,
};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    sync::{Mutex, watch},
    task::spawn_blocking,
    time::timeout,
};
use tokio_rustls::{TlsAcceptor, server::TlsStream};

use self::certificates::{
    ClientVerifier, pair_refused, read_client_authorities, read_private_key, read_server_chain,
};
use crate::{
    config::{Config, TlsConfig},
    measurements, process,
    started::{StartupContext, StartupError},
};

/// The TLS configuration for handshakes.
pub(crate) struct Tls {
    files: TlsConfig,
    /// The file of the configuration.
    configuration: PathBuf,
    current: watch::Sender<Current>,
    /// Locked while the certificate of an open connection is verified. If all were verified at once, other requests would wait.
    verifying: Mutex<()>,
}

/// The client certificate of an open connection, with its chain, and the changes of the CAs since the handshake.
pub(crate) struct PresentedChain {
    /// `None` if the client presented no certificate.
    chain: Option<Arc<[CertificateDer<'static>]>>,
    changes: watch::Receiver<Current>,
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

    fn trusts_same_clients(&self, other: &Self) -> bool {
        match (&self.client_verifier, &other.client_verifier) {
            (Some(one), Some(other)) => one.trusts_same(other),
            (one, other) => one.is_none() && other.is_none(),
        }
    }
}

impl Tls {
    /// Reads the files, and reads them again at each SIGHUP.
    pub(crate) fn load(files: &TlsConfig, configuration: &Path) -> Result<Arc<Self>, StartupError> {
        let mut hangup = process::hangup_signal()?;
        let tls = Arc::new(Self {
            files: files.clone(),
            configuration: configuration.to_owned(),
            current: watch::Sender::new(read(files)?),
            verifying: Mutex::default(),
        });
        let reloading = Arc::clone(&tls);
        tokio::spawn(async move {
            while hangup.recv().await.is_some() {
                let tls = Arc::clone(&reloading);
                if spawn_blocking(move || tls.reload()).await.is_err() {
                    tracing::error!("the task that reloads the TLS files failed");
                }
            }
        });
        Ok(tls)
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

    pub(crate) fn presented_chain(&self, session: &ServerConnection) -> PresentedChain {
        PresentedChain {
            chain: session.peer_certificates().map(Arc::from),
            changes: self.current.subscribe(),
        }
    }

    /// Serves a connection until it ends, or until the reloaded CAs do not verify its client certificate. Returns `None` in the
    /// latter case. The connection is not served while its certificate is verified.
    pub(crate) async fn serve_while_trusted<T>(
        &self,
        mut client: PresentedChain,
        mut served: Pin<&mut impl Future<Output = T>>,
    ) -> Option<T> {
        let Some(chain) = client.chain else {
            return Some(served.await);
        };
        loop {
            tokio::select! {
                biased;
                Ok(()) = client.changes.changed() => {
                    if !self.verifies(&chain).await {
                        return None;
                    }
                }
                ended = served.as_mut() => return Some(ended),
            }
        }
    }

    /// Returns whether the current CAs verify the chain of a client certificate, after other open connections were verified.
    async fn verifies(&self, chain: &Arc<[CertificateDer<'static>]>) -> bool {
        let _verifying = self.verifying.lock().await;
        let (current, chain) = (self.current(), Arc::clone(chain));
        let verified = spawn_blocking(move || current.chain_expires_at(&chain).is_some());
        verified.await.unwrap_or(false)
    }

    fn current(&self) -> Current {
        self.current.borrow().clone()
    }

    fn reload(&self) {
        // If the configuration has an error, the reload of the plugins logs it.
        let config = Config::load(&self.configuration);
        if config.is_ok_and(|config| config.server.tls != self.files) {
            tracing::warn!("ignored changed paths in server.tls: restart the server to use them");
        }
        let reloaded = read(&self.files);
        measurements::reloaded("tls", reloaded.is_ok());
        match reloaded {
            Ok(reloaded) => {
                self.current.send_if_modified(|current| {
                    let are_changed = !current.trusts_same_clients(&reloaded);
                    *current = reloaded;
                    are_changed
                });
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

/// The random numbers of the kernel. Two copies of a running machine respond to a replayed handshake with different keys.
#[derive(Debug)]
struct KernelRandom;

impl SecureRandom for KernelRandom {
    fn fill(&self, bytes: &mut [u8]) -> Result<(), GetRandomFailed> {
        getrandom::fill(bytes).map_err(|_| GetRandomFailed)
    }
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
    let chain = read_server_chain(&files.certificate)?;
    let key = read_private_key(&files.private_key)?;
    let authorities = files.client_authorities.as_deref();
    let authorities = authorities
        .map(|file| read_client_authorities(file, process::now()))
        .transpose()?;
    let provider = Arc::new(CryptoProvider {
        secure_random: &KernelRandom,
        ..rustls::crypto::aws_lc_rs::default_provider()
    });
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
