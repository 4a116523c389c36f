//! Ends connections and the process.

use std::pin::pin;

use hyper::rt::Executor;
use hyper_util::server::graceful::GracefulConnection;
use tokio::{
    signal::unix::{Signal as SignalStream, SignalKind, signal},
    sync::watch,
    time::{Instant, sleep_until},
};

use super::{
    SHORT_IDLE_TIME,
    activity::Activity,
    judgement::{Times, Verdict},
};
use crate::started::StartRefused;

/// The stage of the listener, sent to all connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// Connections are served.
    Open,
    /// Connections are served, but slots are short: idle connections are closed.
    Short,
    /// The process is shutting down: requests in progress are completed, and no new ones are accepted.
    Ending,
    /// The shutdown time is over: requests in progress are cancelled.
    CutOff,
}

/// How a connection ended.
#[derive(Debug)]
pub(super) enum Ended<E> {
    /// The connection ended: the client closed it, it completed after a graceful shutdown, or it failed.
    Itself(Result<(), E>),
    /// The server closed it for this reason.
    Cut(&'static str),
}

/// Serves a connection until it ends, and enforces its time limits.
pub(super) async fn serve_to_the_end<C: GracefulConnection>(
    connection: C,
    activity: &Activity,
    times: Times,
    mut stage: watch::Receiver<Stage>,
) -> Ended<C::Error> {
    let mut connection = pin!(connection);
    let mut ending_since = None;
    loop {
        let now_stage = *stage.borrow_and_update();
        if now_stage == Stage::CutOff {
            return Ended::Cut("the server is shutting down");
        }
        if now_stage == Stage::Ending && ending_since.is_none() {
            connection.as_mut().graceful_shutdown();
            ending_since = Some(Instant::now());
        }
        let times = match now_stage {
            Stage::Short => Times {
                idle: times.idle.min(SHORT_IDLE_TIME),
                ..times
            },
            Stage::Open | Stage::Ending | Stage::CutOff => times,
        };
        let wake = match activity.verdict(&times, ending_since) {
            Verdict::Cut(reason) => return Ended::Cut(reason),
            Verdict::End(reason) => {
                tracing::debug!(reason, "closing the connection");
                connection.as_mut().graceful_shutdown();
                ending_since = Some(Instant::now());
                continue;
            }
            Verdict::Wait(wake) => wake,
        };
        tokio::select! {
            ended = connection.as_mut() => return Ended::Itself(ended),
            // The sender outlives all connections; an error would be harmless.
            Ok(()) = stage.changed() => {}
            () = sleep_until(wake) => {}
        }
    }
}

/// Returns when the process is shutting down.
pub(super) async fn process_ends(stage: &mut watch::Receiver<Stage>) {
    // An error means that the listener is gone.
    let _ = stage
        .wait_for(|stage| matches!(stage, Stage::Ending | Stage::CutOff))
        .await;
}

/// Runs HTTP/2 request tasks until they complete or are cut off. A running task keeps a receiver of the stage, so that
/// the listener knows when the last one has ended.
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
                _ = stage.wait_for(|stage| *stage == Stage::CutOff) => {}
                _ = future => {}
            }
        });
    }
}

/// The signals that shut the server down.
pub(super) struct EndSignals {
    terminate: SignalStream,
    interrupt: SignalStream,
}

impl EndSignals {
    pub(super) fn new() -> Result<Self, StartRefused> {
        let listen = |kind| {
            signal(kind).map_err(|cause| StartRefused::while_doing("listening for signals", cause))
        };
        Ok(Self {
            terminate: listen(SignalKind::terminate())?,
            interrupt: listen(SignalKind::interrupt())?,
        })
    }

    pub(super) async fn received(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}
