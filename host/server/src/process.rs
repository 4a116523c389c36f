//! The process: its threads, clock, signals and limits, and the service manager that started it.

use std::{
    net::SocketAddr,
    path::PathBuf,
    sync::{Arc, mpsc},
    thread,
    time::{Duration, SystemTime},
};

use chrono::{DateTime, Datelike, Utc};
use keywright_core::ports::{Clock, Identifiers};
use keywright_runtime::Compiler;
use rustix::process::{
    DumpableBehavior, Resource, Rlimit, Signal, getrlimit, set_dumpable_behavior, setrlimit,
};
use sd_notify::NotifyState;
use tokio::{
    signal::unix::{Signal as SignalStream, SignalKind, signal},
    task::JoinHandle,
};
use uuid::Uuid;

use crate::started::{StartupContext, StartupError};

/// Runs a command on one thread per processor, and at least two threads, so that one thread continues if a file blocks
/// the other. When the command is complete, its background tasks are abandoned: compilation of plugins can't be
/// interrupted, and could take minutes.
pub(crate) fn on_threads<T>(
    work: impl Future<Output = Result<T, StartupError>>,
) -> Result<T, StartupError> {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    if thread::available_parallelism().is_ok_and(|processors| processors.get() == 1) {
        runtime.worker_threads(2);
    }
    let runtime = runtime
        .enable_all()
        .thread_name("keywright-work")
        .build()
        .while_doing("starting threads")?;
    let outcome = runtime.block_on(work);
    runtime.shutdown_background();
    outcome
}

pub(crate) fn clock() -> Arc<dyn Clock> {
    Arc::new(SystemClock)
}

/// Refuses a time outside the years of HTTP dates, at which the HTTP library would panic.
pub(crate) fn require_http_date(now: DateTime<Utc>) -> Result<(), StartupError> {
    match now.year() {
        1970..=9999 => Ok(()),
        _ => Err(StartupError::new(
            "the server's clock must be between the years 1970 and 9999; set the clock of its machine",
        )),
    }
}

/// Returns the system time. `Utc::now` would panic if it is before 1970.
pub(crate) fn now() -> DateTime<Utc> {
    SystemTime::now().into()
}

struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> DateTime<Utc> {
        now()
    }
}

pub(crate) struct RandomIdentifiers;

impl Identifiers for RandomIdentifiers {
    fn fresh(&self) -> Uuid {
        Uuid::new_v4()
    }
}

/// Returns the compiler of components, which runs this program. Its file may have been replaced since the start.
pub(crate) fn compiler(seconds_max: u64) -> Compiler {
    Compiler::Program {
        path: PathBuf::from("/proc/self/exe"),
        seconds_max,
    }
}

/// Returns the stream of SIGHUP signals.
pub(crate) fn hangup_signal() -> Result<SignalStream, StartupError> {
    signals(SignalKind::hangup())
}

/// The signals that request a shutdown, SIGTERM and SIGINT. Without a handler, the kernel discards them for process 1 of a container.
pub(crate) struct StopSignals {
    terminate: SignalStream,
    interrupt: SignalStream,
}

impl StopSignals {
    /// Starts to receive the signals, which no longer end the process.
    pub(crate) fn listen() -> Result<Self, StartupError> {
        Ok(Self {
            terminate: signals(SignalKind::terminate())?,
            interrupt: signals(SignalKind::interrupt())?,
        })
    }

    /// Waits until a signal has arrived since the last call.
    pub(crate) async fn received(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

fn signals(kind: SignalKind) -> Result<SignalStream, StartupError> {
    signal(kind).while_doing("listening for signals")
}

/// Prevents the system from killing the process when a file reaches its size limit. Instead, the write fails with an error, and
/// the incomplete file can be removed.
pub(crate) fn survive_file_size_limit() -> Result<(), StartupError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build()
        .while_doing("listening for signals")?;
    let _entered = runtime.enter();
    // The handler stays installed without its stream and its runtime.
    signals(SignalKind::from_raw(Signal::XFSZ.as_raw())).map(drop)
}

/// Prevents the system from writing the process's memory to a file after a crash, and other processes of the same user from
/// reading it: it contains keys, values and tokens.
pub(crate) fn protect_memory() {
    // The limit below has no effect if the system passes core dumps to a program, such as `systemd-coredump`. This call fails only
    // for an invalid argument.
    let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    let Rlimit { maximum, .. } = getrlimit(Resource::Core);
    let limit = Rlimit {
        current: Some(0),
        maximum,
    };
    // A process may always lower its soft limit.
    let _ = setrlimit(Resource::Core, limit);
}

/// Raises the soft limit of open files to the hard limit. Logs a warning if that is too low for this many connections: those beyond
/// the limit wait, as they do beyond the configured maximum.
pub(crate) fn raise_open_file_limit(connections_max: usize, database_connections_max: usize) {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    let limit = Rlimit {
        current: maximum,
        maximum,
    };
    let _ = setrlimit(Resource::Nofile, limit);
    let needed = database_connections_max
        .saturating_mul(DESCRIPTORS_PER_DATABASE_CONNECTION)
        .saturating_add(connections_max)
        .saturating_add(OTHER_DESCRIPTORS);
    let needed = u64::try_from(needed).unwrap_or(u64::MAX);
    let allowed = getrlimit(Resource::Nofile).current;
    if let Some(allowed) = allowed.filter(|allowed| *allowed < needed) {
        tracing::warn!(
            server.connections_max = connections_max,
            database_connections_max,
            open_files_needed = needed,
            open_files_max = allowed,
            "too few open files are allowed for server.connections_max and the database connections (storage.readers_max, \
             storage.writers_max); raise the hard limit (`LimitNOFILE`, `ulimit -Hn`), or lower a setting"
        );
    }
}

/// The service manager, notified as systemd expects (`sd_notify(3)`). Without one, nothing is sent.
pub(crate) struct ServiceManager {
    watchdog: Option<JoinHandle<()>>,
}

impl ServiceManager {
    /// Reports that the server serves requests at these addresses, and starts watchdog notifications, if enabled.
    pub(crate) fn ready(addresses: &[SocketAddr]) -> Self {
        let addresses: Vec<_> = addresses.iter().map(SocketAddr::to_string).collect();
        let status = format!("listening on {}", addresses.join(", "));
        notify(&[NotifyState::Ready, NotifyState::Status(&status)]);
        let silence_max = sd_notify::watchdog_enabled();
        Self {
            watchdog: silence_max.map(|time| tokio::spawn(send_watchdog_notifications(time / 2))),
        }
    }

    /// Reports that the server is shutting down, and stops the watchdog notifications: the manager has a stop timeout
    /// instead, and may no longer read notifications.
    pub(crate) fn stopping(self) {
        if let Some(watchdog) = self.watchdog {
            watchdog.abort();
        }
        let status = NotifyState::Status("completing requests in progress");
        notify(&[NotifyState::Stopping, status]);
    }
}

/// Sends watchdog notifications while the request threads are responsive. A separate thread sends them, so that a
/// manager that does not read them can't block requests.
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

/// Open files per database connection: with SQLite, the database, the write-ahead log and its index.
const DESCRIPTORS_PER_DATABASE_CONNECTION: usize = 3;

/// Listeners, logs, the audit trail, connections to the identity provider, and connections being closed.
const OTHER_DESCRIPTORS: usize = 256;

/// The minimum interval of notifications, whatever the manager requests.
const PAUSE_MIN: Duration = Duration::from_millis(10);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_outside_the_years_of_http_dates_is_refused() {
        let at = |seconds| DateTime::from_timestamp(seconds, 0).unwrap();
        let end_of_9999 = 253_402_300_799;
        assert!(require_http_date(at(0)).is_ok());
        assert!(require_http_date(at(end_of_9999)).is_ok());
        assert!(require_http_date(at(-1)).is_err());
        assert!(require_http_date(at(end_of_9999 + 1)).is_err());
    }
}
