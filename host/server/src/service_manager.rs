//! What a service manager is told, as systemd has it (`sd_notify(3)`): that the server is ready, that it ends, and that it is
//! alive. Where none started the process, nothing is told.

use std::{net::SocketAddr, sync::mpsc, thread, time::Duration};

use sd_notify::NotifyState;
use tokio::task::JoinHandle;

/// A service manager that knows that the server is ready.
pub(crate) struct ServiceManager {
    signs_of_life: Option<JoinHandle<()>>,
}

impl ServiceManager {
    /// Reports that the server responds to requests at these addresses, and from now on that it is alive, if that is asked for.
    pub(crate) fn ready(addresses: &[SocketAddr]) -> Self {
        let addresses: Vec<_> = addresses.iter().map(SocketAddr::to_string).collect();
        let status = format!("listening on {}", addresses.join(", "));
        tell(&[NotifyState::Ready, NotifyState::Status(&status)]);
        let silence_max = sd_notify::watchdog_enabled();
        Self {
            signs_of_life: silence_max.map(|time| tokio::spawn(keep_telling(time / 2))),
        }
    }

    /// Tells that requests under way are finished and no others are taken. From now on there are no signs of life: a manager
    /// that has a time for the end, and perhaps reads nothing any more, is told nothing in vain.
    pub(crate) fn ending(self) {
        if let Some(signs_of_life) = self.signs_of_life {
            signs_of_life.abort();
        }
        let status = NotifyState::Status("finishing requests under way");
        tell(&[NotifyState::Stopping, status]);
    }
}

/// Tells again and again that the server is alive: that its threads for requests get to it. They themselves tell nothing, so
/// that a manager that reads nothing holds no request up.
async fn keep_telling(pause: Duration) {
    let (due, told) = mpsc::sync_channel(1);
    let telling = move || {
        while told.recv().is_ok() {
            tell(&[NotifyState::Watchdog]);
        }
    };
    let thread = thread::Builder::new().name("keywright-alive".to_owned());
    if let Err(cause) = thread.spawn(telling) {
        tracing::warn!(error = %cause, "the service manager can't be told that the server is alive");
        return;
    }
    let mut ticks = tokio::time::interval(pause.max(PAUSE_MIN));
    loop {
        ticks.tick().await;
        // Where the one before is not told yet, another one would say nothing more.
        let _ = due.try_send(());
    }
}

fn tell(states: &[NotifyState<'_>]) {
    if let Err(cause) = sd_notify::notify(states) {
        tracing::warn!(error = %cause, "the service manager could not be told how the server is");
    }
}

/// The shortest pause between two signs of life: whoever asks for more is not obeyed.
const PAUSE_MIN: Duration = Duration::from_millis(10);
