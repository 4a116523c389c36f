//! What a service manager is told, as systemd has it (`sd_notify(3)`): that the server is ready, that it ends, and that it is
//! alive. Where none started the process, nothing is told.

use std::{net::SocketAddr, time::Duration};

use sd_notify::NotifyState;

/// Tells that requests are answered at this address, and from now on that the server is alive, if that is asked for.
pub(crate) fn ready(address: SocketAddr) {
    let status = format!("listening on {address}");
    tell(&[NotifyState::Ready, NotifyState::Status(&status)]);
    if let Some(silence_max) = sd_notify::watchdog_enabled() {
        tokio::spawn(keep_telling(silence_max / 2));
    }
}

/// Tells that requests under way are finished and no others are taken.
pub(crate) fn ending() {
    let status = NotifyState::Status("finishing requests under way");
    tell(&[NotifyState::Stopping, status]);
}

/// Tells again and again that the server is alive: that its threads for requests get to it.
async fn keep_telling(pause: Duration) {
    let mut ticks = tokio::time::interval(pause.max(PAUSE_MIN));
    loop {
        ticks.tick().await;
        tell(&[NotifyState::Watchdog]);
    }
}

fn tell(states: &[NotifyState<'_>]) {
    if let Err(cause) = sd_notify::notify(states) {
        tracing::warn!(error = %cause, "the service manager could not be told how the server is");
    }
}

/// The shortest pause between two signs of life: whoever asks for more is not obeyed.
const PAUSE_MIN: Duration = Duration::from_millis(10);
