//! The second listener, for those who watch the server: plain HTTP, a request for each connection, and limits of its own, so
//! that it answers also when the other listener has no place left.
//!
//! Where there are [`CONNECTIONS_MAX`] connections already, a new one closes the oldest that has not sent its request for
//! [`IDLE_DURATION_MIN`], or has not taken its response for [`ANSWER_DURATION_MAX`]. So idle connections do not keep others
//! out.

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
    listening::{BoundAddresses, Listeners},
    started::StartRefused,
};

/// The second listener. It ends, with all of its connections, when this is dropped.
pub(crate) struct ManagementListener {
    listeners: Listeners,
    router: Router,
    connections: JoinSet<()>,
    /// Those of `connections` that may still be open, oldest first.
    open: VecDeque<OpenConnection>,
}

/// A connection that can be closed for another one.
struct OpenConnection {
    task: AbortHandle,
    opened: Instant,
    has_asked: Arc<AtomicBool>,
}

impl ManagementListener {
    /// Listens on the bound addresses.
    ///
    /// # Errors
    /// When another process listens there since.
    pub(crate) fn listen(bound: BoundAddresses, router: Router) -> Result<Self, StartRefused> {
        let listeners = bound.listen()?;
        for address in listeners.addresses() {
            tracing::info!(management.address = %address, "health and metrics are served");
            if !address.ip().is_loopback() {
                tracing::warn!(
                    management.address = %address,
                    "the management address is no loopback one: anyone who can reach it can read the metrics without authentication"
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

    /// Answers requests for ever.
    pub(crate) async fn serve(mut self) -> Infallible {
        loop {
            self.make_room().await;
            match self.listeners.accept().await {
                Ok((stream, _)) => self.take(stream),
                Err(cause) => {
                    tracing::warn!(error = %cause, "a connection to the management address could not be accepted");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    /// Waits until there is room for a connection that is about to come, and closes another one for it where none ends.
    async fn make_room(&mut self) {
        loop {
            while self.connections.try_join_next().is_some() {}
            self.open
                .retain(|connection| !connection.task.is_finished());
            if self.open.len() < CONNECTIONS_MAX {
                return;
            }
            let closable = self.open.iter().position(OpenConnection::may_be_closed);
            if let Some(closed) = closable.and_then(|place| self.open.remove(place)) {
                closed.task.abort();
                tracing::debug!("closed a connection to the management address for a new one");
                return;
            }
            // Whether one has ended meanwhile is seen above.
            let _ = timeout(IDLE_DURATION_MIN, self.connections.join_next()).await;
        }
    }

    fn take(&mut self, stream: TcpStream) {
        let has_asked = Arc::<AtomicBool>::default();
        let answering = answer(stream, self.router.clone(), Arc::clone(&has_asked));
        self.open.push_back(OpenConnection {
            task: self.connections.spawn(answering),
            opened: Instant::now(),
            has_asked,
        });
    }
}

impl OpenConnection {
    fn may_be_closed(&self) -> bool {
        let kept = if self.has_asked.load(Ordering::Acquire) {
            ANSWER_DURATION_MAX
        } else {
            IDLE_DURATION_MIN
        };
        self.opened.elapsed() >= kept
    }
}

/// Answers the one request of a connection.
async fn answer(stream: TcpStream, router: Router, has_asked: Arc<AtomicBool>) {
    let router = TowerToHyperService::new(router);
    let service = service_fn(move |request| {
        has_asked.store(true, Ordering::Release);
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

/// The most connections that are open at once. Before a further one is accepted, another one ends or is closed.
const CONNECTIONS_MAX: usize = 64;

/// How long a connection without a request stays open although others need its place.
const IDLE_DURATION_MIN: Duration = Duration::from_millis(100);

/// The same for one with a request, from its opening on: a health check waits for the database for five seconds.
const ANSWER_DURATION_MAX: Duration = Duration::from_secs(6);

/// How long the head of a request may take to arrive.
const HEADER_DURATION_MAX: Duration = Duration::from_secs(5);

/// The largest head of a request, in bytes.
const HEADER_BYTES_MAX: usize = 16 * 1024;

/// How long a connection may last, whatever happens on it: long enough for a head and an answer that waits for the database.
const CONNECTION_DURATION_MAX: Duration = Duration::from_secs(20);

/// How long to wait after a connection could not be accepted, most likely for want of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
