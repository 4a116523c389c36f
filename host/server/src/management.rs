//! The management listener, for monitoring: plain HTTP, one request per connection, and separate limits, so that it
//! works while the other listener is overloaded.
//!
//! When [`CONNECTIONS_MAX`] connections are open, the listener closes the oldest connection that has been open for
//! [`IDLE_DURATION_MIN`] without a request, or for [`RESPONSE_DURATION_MAX`] without a complete response. So idle
//! connections do not block others.

use std::{
    collections::VecDeque,
    convert::Infallible,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use hyper::{
    server::conn::http1,
    service::{Service, service_fn},
};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use keywright_api::Router;
use tokio::{
    net::TcpStream,
    task::{AbortHandle, JoinSet},
    time::{Instant, timeout},
};

use crate::{
    listener::{BoundAddresses, Listeners},
    started::StartupError,
};

/// The management listener. Dropping it closes all of its connections.
pub(crate) struct ManagementListener {
    listeners: Listeners,
    router: Router,
    connections: JoinSet<()>,
    /// The connections that may still be open, oldest first.
    open: VecDeque<OpenConnection>,
}

/// A connection that may be closed to make room for a new connection.
struct OpenConnection {
    task: AbortHandle,
    opened: Instant,
    has_request: Arc<AtomicBool>,
}

impl ManagementListener {
    pub(crate) fn listen(bound: BoundAddresses, router: Router) -> Result<Self, StartupError> {
        let listeners = bound.listen()?;
        for address in listeners.addresses() {
            tracing::info!(management.address = %address, "serving health and metrics");
            if !address.ip().is_loopback() {
                tracing::warn!(
                    management.address = %address,
                    "the management address is not a loopback address: anyone who can reach it can read the metrics without authentication"
                );
            }
        }
        Ok(Self {
            listeners,
            router,
            connections: JoinSet::new(),
            open: VecDeque::new(),
        })
    }

    /// Serves requests forever.
    pub(crate) async fn serve(mut self) -> Infallible {
        loop {
            self.make_room().await;
            match self.listeners.accept().await {
                Ok((stream, _)) => self.spawn(stream),
                Err(cause) => {
                    tracing::warn!(error = %cause, "could not accept a connection to the management address");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    /// Waits until another connection may be opened, closing one if necessary.
    async fn make_room(&mut self) {
        loop {
            while self.connections.try_join_next().is_some() {}
            self.open
                .retain(|connection| !connection.task.is_finished());
            if self.open.len() < CONNECTIONS_MAX {
                return;
            }
            let closable = self.open.iter().position(OpenConnection::may_be_closed);
            if let Some(closed) = closable.and_then(|index| self.open.remove(index)) {
                closed.task.abort();
                tracing::debug!("closed a connection to the management address for a new one");
                return;
            }
            // Check again even after a timeout: a connection may be old enough to close by then.
            let _ = timeout(IDLE_DURATION_MIN, self.connections.join_next()).await;
        }
    }

    fn spawn(&mut self, stream: TcpStream) {
        let has_request = Arc::<AtomicBool>::default();
        let responding = response(stream, self.router.clone(), Arc::clone(&has_request));
        self.open.push_back(OpenConnection {
            task: self.connections.spawn(responding),
            opened: Instant::now(),
            has_request,
        });
    }
}

impl OpenConnection {
    fn may_be_closed(&self) -> bool {
        let open_time_min = if self.has_request.load(Ordering::Acquire) {
            RESPONSE_DURATION_MAX
        } else {
            IDLE_DURATION_MIN
        };
        self.opened.elapsed() >= open_time_min
    }
}

/// Serves the request of a connection.
async fn response(stream: TcpStream, router: Router, has_request: Arc<AtomicBool>) {
    let router = TowerToHyperService::new(router);
    let service = service_fn(move |request| {
        has_request.store(true, Ordering::Release);
        router.call(request)
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_DURATION_MAX)
        .max_buf_size(HEADER_BYTES_MAX)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), service);
    match timeout(CONNECTION_DURATION_MAX, connection).await {
        Ok(Ok(())) => {}
        Ok(Err(cause)) => {
            tracing::debug!(error = %cause, "a connection to the management address ended early");
        }
        Err(_) => tracing::debug!("a connection to the management address took too long"),
    }
}

/// Maximum number of open connections.
const CONNECTIONS_MAX: usize = 64;

/// Minimum age at which a connection without a request may be closed for a new connection.
const IDLE_DURATION_MIN: Duration = Duration::from_millis(100);

/// Minimum age at which a connection with a request may be closed for a new connection. A health check waits up to five
/// seconds for the database.
const RESPONSE_DURATION_MAX: Duration = Duration::from_secs(6);

/// Maximum time for a request's head to arrive.
const HEADER_DURATION_MAX: Duration = Duration::from_secs(5);

/// Maximum size of a request's head, in bytes.
const HEADER_BYTES_MAX: usize = 16 * 1024;

/// Maximum duration of a connection: long enough for a head and a response that waits for the database.
const CONNECTION_DURATION_MAX: Duration = Duration::from_secs(20);

/// The pause after a failure to accept a connection, most likely for lack of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
