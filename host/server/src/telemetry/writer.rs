//! Writes log lines by a thread of its own, many by one call.
//!
//! The access log has a line for each request, and such lines wait for others for at most [`FLUSH_INTERVAL`]. All other
//! lines are written at once, with those before them, and whoever logs them waits for that: what a server logs last is what
//! explains its end. An output that takes nothing, such as a full pipe, delays nobody for longer than [`WAIT_MAX`], and
//! lines beyond [`LOG_BYTES_MAX`] are lost. They are counted, and the log says so when it is written again.

use std::{
    io::{self, Write},
    mem,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread::{self, ThreadId},
    time::{Duration, Instant},
};

use tracing::Metadata;
use tracing_subscriber::fmt::MakeWriter;

use crate::measurements::log_lines_lost;

/// Writes log lines to an output. A clone writes to the same.
#[derive(Clone)]
pub(super) struct LogWriter(Arc<Shared>);

/// Writes all lines when it is dropped, and ends the thread.
pub(crate) struct LogGuard(LogWriter);

/// Takes one line.
pub(super) struct LineWriter<'a> {
    writer: &'a LogWriter,
    is_urgent: bool,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    /// Wakes the thread.
    wake: Condvar,
    /// Told when lines were written, and when the thread ends.
    progress: Condvar,
}

#[derive(Default)]
struct State {
    lines: Vec<u8>,
    /// How many lines were put into `lines` so far.
    accepted: u64,
    /// How many of them are written.
    written: u64,
    /// How many lines were lost that the log has not told of.
    lost: u64,
    is_urgent: bool,
    /// Whether somebody has waited in vain for the output.
    is_stalled: bool,
    is_closed: bool,
    /// The thread, while it runs.
    thread: Option<ThreadId>,
}

impl LogWriter {
    /// Starts a thread that writes to an output.
    ///
    /// # Errors
    /// If it can't be started.
    pub(super) fn start(output: impl Write + Send + 'static) -> io::Result<(Self, LogGuard)> {
        let shared = Arc::<Shared>::default();
        // Nobody joins the thread: an output that takes nothing must not keep the process from ending.
        let thread = thread::Builder::new()
            .name("keywright-log".to_owned())
            .spawn({
                let shared = Arc::clone(&shared);
                move || shared.write_until_closed(output)
            })?;
        shared.state().thread.get_or_insert(thread.thread().id());
        let writer = Self(shared);
        Ok((writer.clone(), LogGuard(writer)))
    }

    /// Takes a line, which ends in a line break. Returns when an urgent one is written, or after [`WAIT_MAX`].
    fn put(&self, line: &[u8], is_urgent: bool) {
        let shared = &self.0;
        let mut state = shared.state();
        if state.is_closed {
            drop(state);
            // The process is ending, and nobody could be told of a failure.
            let _ = io::stderr().write_all(line);
            return;
        }
        if state.lines.len() + line.len() > LOG_BYTES_MAX {
            state.lost += 1;
            drop(state);
            log_lines_lost(1);
            return;
        }
        let is_first = state.lines.is_empty();
        state.lines.extend_from_slice(line);
        state.accepted += 1;
        state.is_urgent |= is_urgent;
        if is_first || is_urgent || state.lines.len() >= FLUSH_BYTES {
            shared.wake.notify_one();
        }
        if is_urgent && state.thread != Some(thread::current().id()) {
            let accepted = state.accepted;
            shared.wait(state, WAIT_MAX, |state| {
                state.written >= accepted || state.is_stalled
            });
        }
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing that is done under this lock can panic halfway.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait(
        &self,
        state: MutexGuard<'_, State>,
        time_max: Duration,
        is_over: impl Fn(&State) -> bool,
    ) {
        let waited = self
            .progress
            .wait_timeout_while(state, time_max, |state| !is_over(state));
        let (mut state, waited) = waited.unwrap_or_else(PoisonError::into_inner);
        state.is_stalled |= waited.timed_out();
    }

    fn write_until_closed(&self, mut output: impl Write) {
        self.state().thread = Some(thread::current().id());
        loop {
            let mut state = self.collected();
            if state.lines.is_empty() && state.is_closed {
                state.thread = None;
                self.progress.notify_all();
                return;
            }
            let lines = mem::take(&mut state.lines);
            let accepted = state.accepted;
            state.is_urgent = false;
            drop(state);

            // A log that can't be written must not end what logs.
            let outcome = output.write_all(&lines).and_then(|()| output.flush());

            let mut state = self.state();
            let lost = mem::take(&mut state.lost);
            let failed = accepted - state.written;
            state.written = accepted;
            state.is_stalled = false;
            drop(state);
            self.progress.notify_all();
            if outcome.is_err() {
                // Some of them may have been written.
                log_lines_lost(failed);
            }
            if lost > 0 {
                tracing::warn!(
                    log.lines_lost = lost,
                    "log lines were lost: the log was not taken as fast as it was written"
                );
            }
        }
    }

    /// Waits for lines, and then for more of them.
    fn collected(&self) -> MutexGuard<'_, State> {
        let mut state = self.state();
        while state.lines.is_empty() && !state.is_closed {
            let woken = self.wake.wait(state);
            state = woken.unwrap_or_else(PoisonError::into_inner);
        }
        let end = Instant::now() + FLUSH_INTERVAL;
        loop {
            let rest = end.saturating_duration_since(Instant::now());
            let is_due = state.is_urgent || state.is_closed || state.lines.len() >= FLUSH_BYTES;
            if is_due || rest.is_zero() {
                return state;
            }
            let woken = self.wake.wait_timeout(state, rest);
            state = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl Drop for LogGuard {
    fn drop(&mut self) {
        let shared = &self.0.0;
        let mut state = shared.state();
        state.is_closed = true;
        shared.wake.notify_one();
        shared.wait(state, CLOSE_TIME_MAX, |state| state.thread.is_none());
    }
}

impl<'a> MakeWriter<'a> for LogWriter {
    type Writer = LineWriter<'a>;

    fn make_writer(&'a self) -> LineWriter<'a> {
        LineWriter {
            writer: self,
            is_urgent: true,
        }
    }

    fn make_writer_for(&'a self, metadata: &Metadata<'_>) -> LineWriter<'a> {
        LineWriter {
            writer: self,
            is_urgent: metadata.target() != keywright_api::ACCESS_LOG,
        }
    }
}

/// `tracing` writes each line by one call.
impl Write for LineWriter<'_> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.writer.put(line, self.is_urgent);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// How long a line of the access log waits for others.
const FLUSH_INTERVAL: Duration = Duration::from_millis(100);

/// How many bytes are written without waiting for more.
const FLUSH_BYTES: usize = LOG_BYTES_MAX / 4;

/// How many bytes wait to be written at most; lines beyond that are lost.
const LOG_BYTES_MAX: usize = 4 * 1024 * 1024;

/// How long somebody waits until a line is written. While the output takes nothing, nobody waits a second time.
const WAIT_MAX: Duration = Duration::from_millis(100);

/// How long the end of the process waits until all lines are written.
const CLOSE_TIME_MAX: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, Sender, channel};

    use super::*;

    /// An output that tells of each write, and then waits until the test lets it end.
    struct HeldOutput {
        writes: Sender<String>,
        release: Receiver<()>,
    }

    impl Write for HeldOutput {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.writes
                .send(String::from_utf8(bytes.to_vec()).unwrap())
                .unwrap();
            // After the end of the test, nothing is held.
            let _ = self.release.recv();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    struct Log {
        writer: LogWriter,
        guard: LogGuard,
        writes: Receiver<String>,
        release: Sender<()>,
    }

    fn log() -> Log {
        let (sender, writes) = channel();
        let (release, receiver) = channel();
        let output = HeldOutput {
            writes: sender,
            release: receiver,
        };
        let (writer, guard) = LogWriter::start(output).unwrap();
        Log {
            writer,
            guard,
            writes,
            release,
        }
    }

    #[test]
    fn lines_are_written_together_and_in_order() {
        let log = log();
        log.writer.put(b"1\n", false);
        log.writer.put(b"2\n", false);
        let urgent = thread::spawn({
            let writer = log.writer.clone();
            move || writer.put(b"3\n", true)
        });
        let mut written = String::new();
        while written.len() < "1\n2\n3\n".len() {
            written.push_str(&log.writes.recv().unwrap());
            log.release.send(()).unwrap();
        }
        assert_eq!(written, "1\n2\n3\n");
        urgent.join().unwrap();
    }

    #[test]
    fn a_line_that_is_not_urgent_is_written_without_another() {
        let log = log();
        log.writer.put(b"1\n", false);
        assert_eq!(log.writes.recv().unwrap(), "1\n");
        log.release.send(()).unwrap();
    }

    #[test]
    fn an_urgent_line_is_written_when_its_caller_goes_on() {
        let log = log();
        log.release.send(()).unwrap();
        log.writer.put(b"1\n", true);
        let state = log.writer.0.state();
        assert_eq!((state.written, state.is_stalled), (1, false));
    }

    #[test]
    fn an_output_that_takes_nothing_delays_nobody_and_lines_beyond_the_limit_are_counted() {
        let log = log();
        log.writer.put(b"1\n", true);
        assert_eq!(log.writes.recv().unwrap(), "1\n");
        assert!(log.writer.0.state().is_stalled);
        let line = vec![b'x'; LOG_BYTES_MAX / 2];
        for lost in [0, 0, 1] {
            log.writer.put(&line, true);
            assert_eq!(log.writer.0.state().lost, lost);
        }
        log.release.send(()).unwrap();
        assert_eq!(log.writes.recv().unwrap().len(), LOG_BYTES_MAX);
        log.release.send(()).unwrap();
        log.writer.put(b"2\n", false);
        assert_eq!(log.writes.recv().unwrap(), "2\n");
        assert_eq!(log.writer.0.state().lost, 0, "the log told of it");
    }

    #[test]
    fn what_is_left_at_the_end_is_written() {
        let log = log();
        log.release.send(()).unwrap();
        log.writer.put(b"1\n", false);
        drop(log.guard);
        assert_eq!(log.writes.try_recv().unwrap(), "1\n");
    }

    #[test]
    fn an_output_that_takes_nothing_does_not_keep_the_process_from_ending() {
        let log = log();
        log.writer.put(b"1\n", false);
        drop(log.guard);
        assert!(log.writer.0.state().thread.is_some(), "it has ended");
    }
}
