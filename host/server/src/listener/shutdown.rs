//! Closes connections at their timeouts and at shutdown.

use std::{pin::pin, time::Duration};

use hyper::rt::Executor;
use hyper_util::server::graceful::GracefulConnection;
use tokio::{
    sync::watch,
    time::{Instant, sleep_until},
};

use super::{
    connection_tracker::ConnectionTracker,
    timeouts::{Decision, Timeouts},
};

/// The stage of the listener, sent to all connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// Connections are served.
    Open,
    /// Connections are served, but slots are scarce: idle connections are closed.
    Scarce,
    /// The process is shutting down: requests in progress are completed, and no new requests are accepted.
    ShuttingDown,
    /// The shutdown time is over: requests in progress are aborted.
    Aborting,
}

/// How a connection ended.
#[derive(Debug)]
pub(super) enum Ended<E> {
    /// The connection ended: the client closed it, it completed after a graceful shutdown, or it failed.
    Completed(Result<(), E>),
    /// The server closed it for this reason.
    Aborted(&'static str),
}

/// Serves a connection until it ends, and enforces its time limits.
pub(super) async fn serve_until_closed<C: GracefulConnection>(
    connection: C,
    tracker: &ConnectionTracker,
    timeouts: Timeouts,
    mut stage: watch::Receiver<Stage>,
) -> Ended<C::Error> {
    let mut connection = pin!(connection);
    let mut closing_since = None;
    loop {
        let current = *stage.borrow_and_update();
        if current == Stage::Aborting {
            return Ended::Aborted("the server is shutting down");
        }
        if current == Stage::ShuttingDown && closing_since.is_none() {
            connection.as_mut().graceful_shutdown();
            closing_since = Some(Instant::now());
        }
        let timeouts = match current {
            Stage::Scarce => Timeouts {
                idle: timeouts.idle.min(SHORT_IDLE_TIME),
                ..timeouts
            },
            Stage::Open | Stage::ShuttingDown | Stage::Aborting => timeouts,
        };
        let wake = match tracker.decide(&timeouts, closing_since) {
            Decision::Abort(reason) => return Ended::Aborted(reason),
            Decision::Close(reason) => {
                tracing::debug!(reason, "closing the connection");
                connection.as_mut().graceful_shutdown();
                closing_since = Some(Instant::now());
                continue;
            }
            Decision::Wait(wake) => wake,
        };
        tokio::select! {
            ended = connection.as_mut() => return Ended::Completed(ended),
            // The sender outlives all connections; an error would be harmless.
            Ok(()) = stage.changed() => {}
            () = sleep_until(wake) => {}
        }
    }
}

/// Returns when the process is shutting down.
pub(super) async fn shutdown_started(stage: &mut watch::Receiver<Stage>) {
    // An error means that the listener is gone.
    let _ = stage
        .wait_for(|stage| matches!(stage, Stage::ShuttingDown | Stage::Aborting))
        .await;
}

/// Runs HTTP/2 request tasks until they complete or are aborted. A running task keeps a receiver of the stage, so that
/// the listener can wait for the end of the last task.
#[derive(Clone)]
pub(super) struct RequestExecutor(pub(super) watch::Sender<Stage>);

impl<F> Executor<F> for RequestExecutor
where
    F: Future<Output: Send> + Send + 'static,
{
    fn execute(&self, future: F) {
        let mut stage = self.0.subscribe();
        tokio::spawn(async move {
            tokio::select! {
                biased;
                _ = stage.wait_for(|stage| *stage == Stage::Aborting) => {}
                _ = future => {}
            }
        });
    }
}

/// Maximum idle time of a connection while slots are scarce.
const SHORT_IDLE_TIME: Duration = Duration::from_secs(1);
