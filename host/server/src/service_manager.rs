//! Notifies the service manager as systemd expects (`sd_notify(3)`): the server is ready, stopping, or alive. Without a
//! service manager, nothing is sent.

use std::{net::SocketAddr, sync::mpsc, thread, time::Duration};

use sd_notify::NotifyState;
use tokio::task::JoinHandle;

/// A service manager that was notified of readiness.
pub(crate) struct ServiceManager {
    signs_of_life: Option<JoinHandle<()>>,
}

impl ServiceManager {
    /// Reports that the server serves requests at these addresses, and starts watchdog notifications, if enabled.
    pub(crate) fn ready(addresses: &[SocketAddr]) -> Self {
        let addresses: Vec<_> = addresses.iter().map(SocketAddr::to_string).collect();
        let status = format!("listening on {}", addresses.join(", "));
        notify(&[NotifyState::Ready, NotifyState::Status(&status)]);
        let silence_max = sd_notify::watchdog_enabled();
        Self {
            signs_of_life: silence_max
                .map(|time| tokio::spawn(send_watchdog_notifications(time / 2))),
        }
    }

    /// Reports that the server is shutting down, and stops the watchdog notifications: the manager has a stop timeout
    /// instead, and may no longer read notifications.
    pub(crate) fn ending(self) {
        if let Some(signs_of_life) = self.signs_of_life {
            signs_of_life.abort();
        }
        let status = NotifyState::Status("completing requests in progress");
        notify(&[NotifyState::Stopping, status]);
    }
}

/// Sends watchdog notifications while the request threads are responsive. A separate thread sends them, so that a
/// manager that does not read them cannot block requests.
async fn send_watchdog_notifications(pause: Duration) {
    let (due, receiver) = mpsc::sync_channel(1);
    let notifying = move || {
        while receiver.recv().is_ok() {
            notify(&[NotifyState::Watchdog]);
        }
    };
    let thread = thread::Builder::new().name("keywright-alive".to_owned());
    if let Err(cause) = thread.spawn(notifying) {
        tracing::warn!(error = %cause, "could not start the thread for watchdog notifications");
        return;
    }
    let mut ticks = tokio::time::interval(pause.max(PAUSE_MIN));
    loop {
        ticks.tick().await;
        // If the last notification is pending, another one is redundant.
        let _ = due.try_send(());
    }
}

fn notify(states: &[NotifyState<'_>]) {
    if let Err(cause) = sd_notify::notify(states) {
        tracing::warn!(error = %cause, "could not notify the service manager");
    }
}

/// The minimum interval of notifications, whatever the manager requests.
const PAUSE_MIN: Duration = Duration::from_millis(10);
