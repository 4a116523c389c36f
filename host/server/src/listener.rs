//! Accepting connections, and ending them gracefully.

use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use hyper::{Request, body::Incoming};
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::{conn::auto, graceful::GracefulShutdown},
    service::TowerToHyperService,
};
use keywright_api::{Connection, Router};
use tokio::{
    net::{TcpListener, TcpStream},
    signal::unix::{SignalKind, signal},
    sync::{OwnedSemaphorePermit, Semaphore},
    time::timeout,
};
use tokio_rustls::server::TlsStream;
use tower::util::MapRequest;

use crate::{
    config::ServerSection,
    measurements::{handshake_failed, handshake_timed_out},
    started::StartRefused,
    tls::{self, Tls},
    wiring::Served,
};

/// Answers requests until the process is told to end, then lets those under way finish.
pub(crate) async fn serve(served: Served, config: &ServerSection) -> Result<(), StartRefused> {
    let listener = TcpListener::bind(config.listen).await.map_err(|cause| {
        StartRefused::while_doing(format!("listening on {}", config.listen), cause)
    })?;
    let address = listener
        .local_addr()
        .map_err(|cause| StartRefused::while_doing("asking for the listener's address", cause))?;
    let mut end = EndSignals::new()?;
    let connections = Connections::new(served.tls, served.router, config);
    tracing::info!(server.address = %address, "listening");
    if let Some(announcement) = &served.announcement {
        announcement.print(address);
    }

    loop {
        tokio::select! {
            () = end.received() => break,
            () = connections.accept_one(&listener) => {}
        }
    }
    drop(listener);
    tracing::info!("ending: requests under way are finished, new ones are refused");
    connections
        .finish(Duration::from_secs(config.shutdown_seconds_max))
        .await;
    if let Some(audit) = &served.audit {
        audit.close().await;
    }
    served.database.close().await;
    Ok(())
}

/// The connections that are open.
struct Connections {
    tls: Arc<Tls>,
    router: Router,
    protocol: Arc<auto::Builder<TokioExecutor>>,
    graceful: GracefulShutdown,
    places: Arc<Semaphore>,
    handshake_time_max: Duration,
}

impl Connections {
    fn new(tls: Arc<Tls>, router: Router, config: &ServerSection) -> Self {
        let mut protocol = auto::Builder::new(TokioExecutor::new());
        protocol
            .http1()
            .timer(TokioTimer::new())
            .header_read_timeout(Duration::from_secs(config.header_seconds_max));
        protocol
            .http2()
            .timer(TokioTimer::new())
            .max_concurrent_streams(config.streams_per_connection_max);
        Self {
            tls,
            router,
            protocol: Arc::new(protocol),
            graceful: GracefulShutdown::new(),
            places: Arc::new(Semaphore::new(config.connections_max)),
            handshake_time_max: Duration::from_secs(config.handshake_seconds_max),
        }
    }

    /// Waits for a free place and for a connection, and serves it beside the others.
    async fn accept_one(&self, listener: &TcpListener) {
        let Ok(place) = Arc::clone(&self.places).acquire_owned().await else {
            return;
        };
        match listener.accept().await {
            Ok((stream, peer)) => self.spawn(stream, peer, place),
            Err(cause) => {
                // Out of file descriptors, most likely: others must end first.
                tracing::warn!(error = %cause, "a connection could not be accepted");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }

    fn spawn(&self, stream: TcpStream, peer: SocketAddr, place: OwnedSemaphorePermit) {
        let tls = Arc::clone(&self.tls);
        let protocol = Arc::clone(&self.protocol);
        let watcher = self.graceful.watcher();
        let router = self.router.clone();
        let handshake_time_max = self.handshake_time_max;
        tokio::spawn(async move {
            let _place = place;
            // Small answers must not wait for the client's acknowledgement of earlier ones.
            let _ = stream.set_nodelay(true);
            let stream = match timeout(handshake_time_max, tls.accept(stream)).await {
                Ok(Ok(stream)) => stream,
                Ok(Err(cause)) => {
                    handshake_failed(&cause);
                    tracing::debug!(client.address = %peer, error = %cause, "TLS handshake failed");
                    return;
                }
                Err(_) => {
                    handshake_timed_out();
                    tracing::debug!(client.address = %peer, "TLS handshake took too long");
                    return;
                }
            };
            let connection = match described(&stream, peer) {
                Ok(connection) => connection,
                Err(cause) => {
                    tracing::debug!(client.address = %peer, error = %cause, "connection is gone");
                    return;
                }
            };
            let service = MapRequest::new(router, move |mut request: Request<Incoming>| {
                request.extensions_mut().insert(connection.clone());
                request
            });
            let connection = protocol
                .serve_connection(TokioIo::new(stream), TowerToHyperService::new(service))
                .into_owned();
            if let Err(cause) = watcher.watch(connection).await {
                tracing::debug!(client.address = %peer, error = %cause, "connection ended early");
            }
        });
    }

    async fn finish(self, time_max: Duration) {
        if timeout(time_max, self.graceful.shutdown()).await.is_err() {
            tracing::warn!("requests were still under way after {time_max:?}; they are cut off");
        }
    }
}

/// What requests are told of the connection that they came over.
fn described(stream: &TlsStream<TcpStream>, peer: SocketAddr) -> io::Result<Connection> {
    let (transport, session) = stream.get_ref();
    Ok(Connection {
        peer,
        local: transport.local_addr()?,
        client_certificate: tls::client_certificate(session),
    })
}

const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// The signals that end the server.
struct EndSignals {
    terminate: tokio::signal::unix::Signal,
    interrupt: tokio::signal::unix::Signal,
}

impl EndSignals {
    fn new() -> Result<Self, StartRefused> {
        let listen = |kind| {
            signal(kind).map_err(|cause| StartRefused::while_doing("listening for signals", cause))
        };
        Ok(Self {
            terminate: listen(SignalKind::terminate())?,
            interrupt: listen(SignalKind::interrupt())?,
        })
    }

    async fn received(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}
