//! The second listener, for those who watch the server: plain HTTP, a request for each connection, and limits of its own, so
//! that it answers also when the other listener has no place left.

use std::{convert::Infallible, sync::Arc, time::Duration};

use hyper::server::conn::http1;
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use keywright_api::Router;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore},
    task::JoinSet,
    time::timeout,
};

use crate::{config::ManagementConfig, started::StartRefused};

/// The second listener. It ends, with all of its connections, when this is dropped.
pub(crate) struct ManagementListener {
    listener: TcpListener,
    router: Router,
    places: Arc<Semaphore>,
    connections: JoinSet<()>,
}

impl ManagementListener {
    /// Listens on the configured address.
    ///
    /// # Errors
    /// When the address can't be had.
    pub(crate) async fn bind(
        config: &ManagementConfig,
        router: Router,
    ) -> Result<Option<Self>, StartRefused> {
        let Some(address) = config.listen else {
            return Ok(None);
        };
        let refused = |cause| {
            StartRefused::while_doing(format!("listening on {address} (management.listen)"), cause)
        };
        let listener = TcpListener::bind(address).await.map_err(refused)?;
        let bound = listener.local_addr().map_err(refused)?;
        tracing::info!(management.address = %bound, "health and metrics are served");
        if !bound.ip().is_loopback() {
            tracing::warn!(
                management.address = %bound,
                "the management address is no loopback one: whoever reaches it reads the metrics, without any authentication"
            );
        }
        Ok(Some(Self {
            listener,
            router,
            places: Arc::new(Semaphore::new(CONNECTIONS_MAX)),
            connections: JoinSet::new(),
        }))
    }

    /// Answers requests for ever.
    pub(crate) async fn serve(mut self) -> Infallible {
        loop {
            while self.connections.try_join_next().is_some() {}
            // The semaphore is never closed.
            let Ok(place) = Arc::clone(&self.places).acquire_owned().await else {
                std::future::pending().await
            };
            match self.listener.accept().await {
                Ok((stream, _)) => {
                    self.connections
                        .spawn(answer(stream, self.router.clone(), place));
                }
                Err(cause) => {
                    tracing::warn!(error = %cause, "a connection to the management address could not be accepted");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }
}

/// Answers the one request of a connection.
async fn answer(stream: TcpStream, router: Router, _place: OwnedSemaphorePermit) {
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_DURATION_MAX)
        .max_buf_size(HEADER_BYTES_MAX)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    match timeout(CONNECTION_DURATION_MAX, connection).await {
        Ok(Ok(())) => {}
        Ok(Err(cause)) => {
            tracing::debug!(error = %cause, "a connection to the management address ended early");
        }
        Err(_) => tracing::debug!("a connection to the management address took too long"),
    }
}

/// The most connections that are open at once; further ones wait to be accepted.
const CONNECTIONS_MAX: usize = 16;

/// How long the head of a request may take to arrive.
const HEADER_DURATION_MAX: Duration = Duration::from_secs(5);

/// The largest head of a request, in bytes.
const HEADER_BYTES_MAX: usize = 16 * 1024;

/// How long a connection may last, whatever happens on it: long enough for a head and an answer that waits for the database.
const CONNECTION_DURATION_MAX: Duration = Duration::from_secs(20);

/// How long to wait after a connection could not be accepted, most likely for want of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
