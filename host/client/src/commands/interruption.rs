//! Shutdown signals: SIGINT, SIGTERM and SIGHUP.

use std::{fs, io, process, thread, time::Duration};

use futures_util::future::select_all;
use tokio::{
    runtime,
    signal::unix::{Signal, SignalKind, signal},
    sync::oneshot,
    time::sleep,
};

use super::failure::INTERRUPTED;

/// A listener for shutdown signals.
pub(super) struct Interruption {
    came: oneshot::Receiver<()>,
}

impl Interruption {
    /// Starts listening. After the first signal, the program has [`GIVING_UP_MAX`] to stop before it is forced to exit.
    ///
    /// A separate thread enforces this, because the main thread may be blocked on a file or a pipe.
    ///
    /// # Errors
    /// When a signal handler or the thread can't be created.
    pub(super) fn listen() -> io::Result<Self> {
        let runtime = runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let signals = {
            let _entered = runtime.enter();
            let kinds = [
                SignalKind::interrupt(),
                SignalKind::terminate(),
                SignalKind::hangup(),
            ];
            let heard = kinds.into_iter().filter(|kind| !is_ignored(*kind));
            heard.map(signal).collect::<io::Result<Vec<_>>>()?
        };
        let (interrupted, came) = oneshot::channel();
        let watch = move || runtime.block_on(watch(signals, interrupted));
        thread::Builder::new()
            .name("signals".to_owned())
            .spawn(watch)?;
        Ok(Self { came })
    }

    /// Waits for the first signal.
    pub(super) async fn came(self) {
        if self.came.await.is_err() {
            // All signals are ignored.
            std::future::pending::<()>().await;
        }
    }
}

async fn watch(mut signals: Vec<Signal>, interrupted: oneshot::Sender<()>) {
    if signals.is_empty() {
        return;
    }
    select_all(signals.iter_mut().map(|signal| Box::pin(signal.recv()))).await;
    let _ = interrupted.send(());
    sleep(GIVING_UP_MAX).await;
    process::exit(INTERRUPTED.into());
}

/// Whether the process was started with this signal ignored, as by `nohup`. Such signals stay ignored.
fn is_ignored(kind: SignalKind) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    is_ignored_in(&status, kind)
}

fn is_ignored_in(status: &str, kind: SignalKind) -> bool {
    let mask = status
        .lines()
        .find_map(|line| line.strip_prefix("SigIgn:"))
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    // The lowest bit belongs to signal 1.
    let bit = u32::try_from(kind.as_raw_value() - 1).ok();
    let bit = bit.and_then(|shift| 1_u64.checked_shl(shift));
    mask.unwrap_or_default() & bit.unwrap_or_default() != 0
}

/// The time a verb has to stop before the program exits. Longer than an export waits for the reader of its output.
const GIVING_UP_MAX: Duration = Duration::from_secs(4);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_in_the_mask_of_ignored_signals_stay_ignored() {
        let status = |mask: &str| format!("Name:\tkeywright\nSigBlk:\tffff\nSigIgn:\t{mask}\n");
        let [interrupt, terminate, hang_up] = [
            SignalKind::interrupt(),
            SignalKind::terminate(),
            SignalKind::hangup(),
        ];
        for (mask, kind, expected) in [
            ("0000000000000001", hang_up, true),
            ("0000000000000001", interrupt, false),
            ("0000000000000002", interrupt, true),
            ("0000000000004000", terminate, true),
            ("0000000000001000", terminate, false),
            ("nonsense", terminate, false),
        ] {
            assert_eq!(is_ignored_in(&status(mask), kind), expected, "{mask}");
        }
        assert!(!is_ignored_in("", hang_up));
    }
}
