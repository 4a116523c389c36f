//! The server's own TLS: its certificate, and the authorities whose clients it knows.
//!
//! All of it comes from files, which are read again at each SIGHUP: handshakes from then on use what is new, and connections
//! that are open go on. Files that can't be used leave what was read before in place.

mod check;
mod client_verifier;
mod files;

use std::{
    io,
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use keywright_core::certificate::ClientCertificateFacts;
use keywright_crypto::client_certificate_facts;
use rustls::{
    ServerConfig, ServerConnection,
    crypto::CryptoProvider,
    pki_types::UnixTime,
    server::{NoServerSessionStorage, WebPkiClientVerifier, danger::ClientCertVerifier},
    time_provider::TimeProvider,
};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    signal::unix::{SignalKind, signal},
    sync::watch,
    task::spawn_blocking,
    time::timeout,
};
use tokio_rustls::{TlsAcceptor, server::TlsStream};

use crate::{config::TlsConfig, started::StartRefused, wiring};
use client_verifier::{ClientAuthority, ClientVerifier};

pub(crate) use check::check;
pub(crate) use files::certificates;

/// What handshakes are made with.
pub(crate) struct Tls {
    files: TlsConfig,
    current: watch::Sender<Arc<ServerConfig>>,
}

impl Tls {
    /// Reads the files.
    pub(crate) fn load(files: &TlsConfig) -> Result<Self, StartRefused> {
        Ok(Self {
            files: files.clone(),
            current: watch::Sender::new(Arc::new(server_config(files)?)),
        })
    }

    /// Makes a handshake. A client with which it fails is given the time to read why.
    pub(crate) async fn accept<S>(&self, stream: S) -> io::Result<TlsStream<S>>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let acceptor = TlsAcceptor::from(Arc::clone(&self.current.borrow()));
        match acceptor.accept(stream).into_fallible().await {
            Ok(stream) => Ok(stream),
            Err((cause, stream)) => {
                close_after_alert(stream).await;
                Err(cause)
            }
        }
    }

    /// Reads the files again whenever the process is told to by SIGHUP.
    pub(crate) fn reload_on_hangup(self: &Arc<Self>) -> Result<(), StartRefused> {
        let mut hangup = signal(SignalKind::hangup())
            .map_err(|cause| StartRefused::while_doing("listening for SIGHUP", cause))?;
        let tls = Arc::clone(self);
        tokio::spawn(async move {
            while hangup.recv().await.is_some() {
                let tls = Arc::clone(&tls);
                if spawn_blocking(move || tls.reload()).await.is_err() {
                    tracing::error!("reading the TLS files again ended early");
                }
            }
        });
        Ok(())
    }

    fn reload(&self) {
        match server_config(&self.files) {
            Ok(config) => {
                self.current.send_replace(Arc::new(config));
                tracing::info!("the TLS files were read again: new connections use them");
            }
            Err(refused) => {
                tracing::error!(
                    error = refused.with_causes(),
                    "the TLS files can't be used: new connections use what was read before"
                );
            }
        }
    }
}

/// Ends a connection whose last word is an alert. A client may be sending its request already, and if that were left unread,
/// closing would reset the connection, so that the client might never read the alert.
async fn close_after_alert<S: AsyncRead + AsyncWrite + Unpin>(mut stream: S) {
    let unread = async {
        stream.shutdown().await?;
        tokio::io::copy(&mut stream.take(UNREAD_BYTES_MAX), &mut tokio::io::sink()).await
    };
    // The client is told already; whether it is still there does not matter.
    let _ = timeout(ALERT_TIME_MAX, unread).await;
}

/// What the certificate says that the client of a session has presented, if it has. Of one that can't be read, nothing is
/// known: it identifies nobody.
pub(crate) fn client_certificate(
    session: &ServerConnection,
) -> Option<Arc<ClientCertificateFacts>> {
    let certificate = session.peer_certificates()?.first()?;
    Some(Arc::new(
        client_certificate_facts(certificate).unwrap_or_default(),
    ))
}

/// The time for handshakes. A clock before 1970 counts as 1970: the clients are then told about it by a response.
#[derive(Debug)]
struct TimeFrom1970;

impl TimeProvider for TimeFrom1970 {
    fn current_time(&self) -> Option<UnixTime> {
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH);
        Some(UnixTime::since_unix_epoch(since_1970.unwrap_or_default()))
    }
}

/// TLS 1.2 and 1.3, with HTTP/2 and HTTP/1.1 offered.
fn server_config(files: &TlsConfig) -> Result<ServerConfig, StartRefused> {
    let chain = files::certificates("the TLS certificate", &files.certificate)?;
    let key = files::private_key(&files.private_key)?;
    let authorities = files.client_authorities.as_deref();
    let authorities = authorities
        .map(|file| files::client_authorities(file, wiring::now()))
        .transpose()?;
    let knows_clients = authorities.is_some();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let verifier = client_verifier(authorities, &provider);
    let mut server = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|cause| StartRefused::while_doing("choosing TLS versions", cause))?
        .with_client_cert_verifier(verifier)
        .with_single_cert(chain, key)
        .map_err(|cause| {
            StartRefused::file("using the TLS certificate", &files.certificate, cause)
        })?;
    server.time_provider = Arc::new(TimeFrom1970);
    server.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    if knows_clients {
        refuse_resumption(&mut server);
    }
    Ok(server)
}

fn client_verifier(
    authorities: Option<Vec<ClientAuthority>>,
    provider: &CryptoProvider,
) -> Arc<dyn ClientCertVerifier> {
    match authorities {
        Some(authorities) => Arc::new(ClientVerifier::new(
            authorities,
            provider.signature_verification_algorithms,
        )),
        None => WebPkiClientVerifier::no_client_auth(),
    }
}

/// A session that is resumed brings its client certificate along and is not verified again, so one that has expired since
/// would still be taken. Each connection is therefore a handshake of its own.
fn refuse_resumption(server: &mut ServerConfig) {
    server.session_storage = Arc::new(NoServerSessionStorage {});
    server.send_tls13_tickets = 0;
}

/// How long a client has to read an alert, and to close the connection.
const ALERT_TIME_MAX: Duration = Duration::from_secs(2);

/// How much of what such a client sends meanwhile is read, in bytes.
const UNREAD_BYTES_MAX: u64 = 64 * 1024;
