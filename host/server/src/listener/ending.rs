//! Ending: the process, and one connection.

use std::pin::pin;

use hyper::rt::Executor;
use hyper_util::server::graceful::GracefulConnection;
use rustix::process::Signal;
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

/// What all connections are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// They are served.
    Open,
    /// They are served, and places are short: those that are idle make room.
    Short,
    /// The process ends: requests under way are finished, new ones are not taken.
    Ending,
    /// Nothing is waited for any more: whatever is still under way is given up.
    CutOff,
}

/// How a connection ended.
#[derive(Debug)]
pub(super) enum Ended<E> {
    /// By itself: the client closed it, or was told to, or something went wrong.
    Itself(Result<(), E>),
    /// The server did not wait any longer, because of this.
    Cut(&'static str),
}

/// Serves a connection until it ends, and sees to it that it does.
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
            return Ended::Cut("the server ends");
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
                tracing::debug!(reason, "connection is ended");
                connection.as_mut().graceful_shutdown();
                ending_since = Some(Instant::now());
                continue;
            }
            Verdict::Wait(wake) => wake,
        };
        tokio::select! {
            ended = connection.as_mut() => return Ended::Itself(ended),
            // The sender outlives all connections. Were it gone, nothing would come of it.
            Ok(()) = stage.changed() => {}
            () = sleep_until(wake) => {}
        }
    }
}

/// Returns when the process is to end.
pub(super) async fn process_ends(stage: &mut watch::Receiver<Stage>) {
    // An error says that the sender is gone, and with it the listener.
    let _ = stage
        .wait_for(|stage| matches!(stage, Stage::Ending | Stage::CutOff))
        .await;
}

/// Runs what is done for requests over HTTP/2 beside their connections, until it ends or is cut off. While it runs, it holds
/// a receiver of what all connections are told, by which the end of the last one is known.
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

/// Keeps the process alive when a file reaches its size limit or the reader of a pipe is gone. The write fails with an error.
pub(crate) fn survive_failing_writes() -> Result<(), StartRefused> {
    for signal_number in [Signal::XFSZ, Signal::PIPE] {
        // A handler stays for as long as the process lives, whatever becomes of what waits for the signal.
        let handled = signal(SignalKind::from_raw(signal_number.as_raw()));
        drop(handled.map_err(|cause| StartRefused::while_doing("handling signals", cause))?);
    }
    Ok(())
}

/// The signals that end the server.
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
