//! Logging: readable text on a terminal, JSON otherwise, unless the format is configured.
//!
//! The access log has a line for each request. These lines are buffered for at most [`FLUSH_INTERVAL`], or until there are
//! [`FLUSH_BYTES`]. Every other line is written at once, after all buffered lines, because the last lines explain why a
//! server ended.

use std::{
    fmt,
    io::{self, IsTerminal, Write},
    mem,
    sync::Arc,
    thread::{self, Thread},
    time::Duration,
};

use chrono::SecondsFormat;
use keywright_core::log;
use parking_lot::Mutex;
use serde::Serialize;
use tracing::{
    Event, Metadata, Subscriber,
    field::{Field, Visit},
};
use tracing_log::NormalizeEvent;
use tracing_subscriber::{
    field::RecordFields,
    filter::LevelFilter,
    fmt::{
        FmtContext, FormatEvent, FormatFields, MakeWriter,
        format::{DefaultFields, Writer},
    },
    layer::SubscriberExt,
    registry::LookupSpan,
    util::SubscriberInitExt,
};

use crate::{
    config::{LogConfig, LogFormat},
    process,
    started::{StartupContext, StartupError},
};

/// Starts logging to standard error, without buffering.
///
/// The filter is the environment variable `KEYWRIGHT_LOG`, in the syntax of `tracing`, or the configured filter if it
/// is not set. Lines of other libraries at `debug` and below are always dropped, because they may contain bodies.
pub(crate) fn start(config: &LogConfig) -> Result<(), StartupError> {
    start_up_to(LevelFilter::TRACE, config, io::stderr)
}

/// Like [`start`], but drops everything below warnings, whatever the filter.
pub(crate) fn start_quietly(config: &LogConfig) -> Result<(), StartupError> {
    start_up_to(LevelFilter::WARN, config, io::stderr)
}

/// Like [`start`], but writes many lines of the access log at once. Remaining lines are written when the guard is dropped.
pub(crate) fn start_buffered(config: &LogConfig) -> Result<LogGuard, StartupError> {
    let started = LogWriter::start(io::stderr());
    let (writer, guard) = started.while_doing("starting the log's thread")?;
    start_up_to(LevelFilter::TRACE, config, writer)?;
    Ok(guard)
}

fn start_up_to<W>(level_max: LevelFilter, config: &LogConfig, writer: W) -> Result<(), StartupError>
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    let filter = config.filter()?;
    // Without this limit, every event of a library at a lower level would be passed to the filters.
    let level_max = filter
        .max_level_hint()
        .map_or(level_max, |hint| hint.min(level_max));
    let own_code_or_important = tracing_subscriber::filter::filter_fn(|metadata| {
        let target = metadata.target();
        let is_dropped = DROPPED.iter().any(|library| target.starts_with(library));
        target.starts_with("keywright") || *metadata.level() <= tracing::Level::INFO && !is_dropped
    });
    let as_json = match config.format {
        LogFormat::Auto => !io::stderr().is_terminal(),
        LogFormat::Human => false,
        LogFormat::Json => true,
    };
    let registry = tracing_subscriber::registry()
        .with(filter)
        .with(level_max)
        .with(own_code_or_important);
    // A failure to write the log must not end the caller: reporting it on the same stream would panic.
    let layer = tracing_subscriber::fmt::layer()
        .log_internal_errors(false)
        .with_writer(writer);
    let outcome = if as_json {
        registry.with(layer.event_format(JsonFormat)).try_init()
    } else {
        registry.with(layer.fmt_fields(HumanFields)).try_init()
    };
    outcome.while_doing("starting the log")
}

/// Formats the fields of a line for people, with the id of the request.
struct HumanFields;

impl<'w> FormatFields<'w> for HumanFields {
    fn format_fields<R: RecordFields>(&self, mut writer: Writer<'w>, fields: R) -> fmt::Result {
        DefaultFields::new().format_fields(writer.by_ref(), fields)?;
        log::request_id().map_or(Ok(()), |id| write!(writer, " {REQUEST_ID}={id}"))
    }
}

/// Formats events with their fields and the id of the request as JSON, one object per line.
///
/// The formatter of `tracing-subscriber` passes each key, value and punctuation mark through several writers. A line of the
/// access log takes three times as many instructions there.
struct JsonFormat;

impl<S, N> FormatEvent<S, N> for JsonFormat
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'w> FormatFields<'w> + 'static,
{
    fn format_event(
        &self,
        _: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        // The target of events from the crate `log` is in their fields.
        let normalized = event.normalized_metadata();
        let metadata = normalized.as_ref().unwrap_or_else(|| event.metadata());
        let mut line = Fields(Vec::with_capacity(LINE_BYTES));
        line.0.extend_from_slice(b"{\"timestamp\":");
        let time = process::now();
        line.push_json(&time.to_rfc3339_opts(SecondsFormat::Micros, true));
        line.push("level", metadata.level().as_str());
        if let Some(id) = log::request_id() {
            line.push(REQUEST_ID, &id);
        }
        event.record(&mut line);
        line.push("target", metadata.target());
        line.0.extend_from_slice(b"}\n");
        writer.write_str(str::from_utf8(&line.0).map_err(|_| fmt::Error)?)
    }
}

/// Fields of a JSON object, each after a comma.
struct Fields(Vec<u8>);

impl Fields {
    fn push(&mut self, name: &str, value: &(impl Serialize + ?Sized)) {
        // Names are constants of the code. They contain no characters to escape.
        self.0.extend_from_slice(b",\"");
        self.0.extend_from_slice(name.as_bytes());
        self.0.extend_from_slice(b"\":");
        self.push_json(value);
    }

    fn push_json(&mut self, value: &(impl Serialize + ?Sized)) {
        // Strings and numbers can always be serialized.
        let _ = serde_json::to_writer(&mut self.0, value);
    }
}

impl Visit for Fields {
    fn record_bool(&mut self, field: &Field, value: bool) {
        self.push(field.name(), &value);
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.push(field.name(), &format_args!("{value:?}"));
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.push(field.name(), &value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.push(field.name(), &value);
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.push(field.name(), value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.push(field.name(), &value);
    }
}

/// Writes log lines to an output.
struct LogWriter {
    shared: Arc<Shared>,
    thread: Thread,
}

/// Writes the remaining lines on drop.
pub(crate) struct LogGuard(Arc<Shared>);

struct LineWriter<'a> {
    writer: &'a LogWriter,
    is_urgent: bool,
}

struct Shared {
    /// Lines not yet written, oldest first.
    lines: Mutex<Vec<u8>>,
    /// Locked before `lines`, so that lines are written in order.
    output: Mutex<Output>,
}

struct Output {
    stream: Box<dyn Write + Send>,
    /// The lines that were written last, whose memory is used again.
    written: Vec<u8>,
}

impl LogWriter {
    fn start(output: impl Write + Send + 'static) -> io::Result<(Self, LogGuard)> {
        let shared = Arc::new(Shared {
            lines: Mutex::default(),
            output: Mutex::new(Output {
                stream: Box::new(output),
                written: Vec::new(),
            }),
        });
        // The thread is never joined: once the guard has written the remaining lines, it has no work left.
        let thread = thread::Builder::new()
            .name("keywright-log".to_owned())
            .spawn({
                let shared = Arc::clone(&shared);
                move || shared.flush_buffered_lines()
            })?;
        let guard = LogGuard(Arc::clone(&shared));
        let thread = thread.thread().clone();
        Ok((Self { shared, thread }, guard))
    }

    /// Adds a line, with its line break.
    fn add_line(&self, line: &[u8], is_urgent: bool) {
        let mut lines = self.shared.lines.lock();
        let is_first = lines.is_empty();
        lines.extend_from_slice(line);
        let is_due = is_urgent || lines.len() >= FLUSH_BYTES;
        drop(lines);
        if is_due {
            self.shared.flush();
        } else if is_first {
            self.thread.unpark();
        }
    }
}

impl Shared {
    fn flush(&self) {
        let Output { stream, written } = &mut *self.output.lock();
        written.clear();
        mem::swap(written, &mut *self.lines.lock());
        // A failure to write the log must not end the caller, and there is nowhere to report it.
        let _ = stream.write_all(written).and_then(|()| stream.flush());
    }

    fn flush_buffered_lines(&self) {
        loop {
            while self.lines.lock().is_empty() {
                thread::park();
            }
            thread::sleep(FLUSH_INTERVAL);
            self.flush();
        }
    }
}

impl Drop for LogGuard {
    fn drop(&mut self) {
        self.0.flush();
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

/// `tracing` writes each line with one call.
impl Write for LineWriter<'_> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.writer.add_line(line, self.is_urgent);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The targets of libraries whose lines are dropped. An unauthenticated client can cause any number of warnings of the first
/// three; the callers log their errors, with their causes. PostgreSQL writes its notices, whose number is also unbounded, to its
/// own log. Warnings about a `pgpass` file contain the malformed line, which may be a password.
const DROPPED: [&str; 5] = [
    "h2",
    "hyper",
    "rustls",
    "sqlx::postgres::notice",
    "sqlx_postgres::options",
];

/// The field with the id of the request.
const REQUEST_ID: &str = "request_id";

/// The typical maximum size of a line as JSON, in bytes.
const LINE_BYTES: usize = 512;

/// Maximum time that a line of the access log is buffered.
const FLUSH_INTERVAL: Duration = Duration::from_millis(100);

/// The number of buffered bytes at which they are written at once.
const FLUSH_BYTES: usize = 64 * 1024;

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, Sender, channel};

    use serde_json::{Value, json};
    use uuid::Uuid;

    use super::*;

    /// An output that sends its data to the test.
    struct PassingOutput(Sender<String>);

    impl Write for PassingOutput {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let text = String::from_utf8(bytes.to_vec()).unwrap();
            let _ = self.0.send(text);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn start() -> (LogWriter, LogGuard, Receiver<String>) {
        let (sender, receiver) = channel();
        let (writer, guard) = LogWriter::start(PassingOutput(sender)).unwrap();
        (writer, guard, receiver)
    }

    #[test]
    fn a_line_for_people_ends_with_the_id_of_its_request() {
        let (writer, _guard, output) = start();
        let layer = tracing_subscriber::fmt::layer()
            .with_ansi(false)
            .with_writer(writer);
        let subscriber = tracing_subscriber::registry().with(layer.fmt_fields(HumanFields));
        let log = || tracing::warn!(count = 1, "said");
        tracing::subscriber::with_default(subscriber, || {
            log();
            log::with_request_id(Some(Uuid::nil()), log);
        });
        let ends = output.try_iter().map(|line| {
            let (_, end) = line.split_once("said").unwrap();
            end.to_owned()
        });
        let id = format!(" count=1 request_id={}\n", Uuid::nil());
        assert!(ends.eq([" count=1\n".to_owned(), id]));
    }

    fn lines_of(log: impl FnOnce()) -> Vec<Value> {
        let (writer, _guard, output) = start();
        let layer = tracing_subscriber::fmt::layer()
            .event_format(JsonFormat)
            .with_writer(writer);
        tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), log);
        let lines = output.try_iter().map(|line| {
            let mut line: Value = serde_json::from_str(&line).unwrap();
            let time = line["timestamp"].take();
            assert_eq!(
                time.as_str().unwrap().len(),
                "2026-11-22T02:19:23.123456Z".len()
            );
            line
        });
        lines.collect()
    }

    #[test]
    fn an_event_has_its_fields_and_the_id_of_its_request() {
        let warn = || {
            tracing::warn!(
                target: "b",
                { a.b = "\"\n\u{1}ä", count = -1, ratio = 0.5, is_so = true, what = ?Some(1) },
                "said {}",
                "it"
            );
        };
        let lines = lines_of(|| log::with_request_id(Some(Uuid::nil()), warn));
        let expected = json!({
            "timestamp": null,
            "level": "WARN",
            "request_id": Uuid::nil(),
            "message": "said it",
            "a.b": "\"\n\u{1}ä",
            "count": -1,
            "ratio": 0.5,
            "is_so": true,
            "what": "Some(1)",
            "target": "b",
        });
        assert_eq!(lines, [expected]);
    }

    #[test]
    fn an_event_without_a_request_has_no_id() {
        let lines = lines_of(|| tracing::info!(target: "a", ratio = f64::NAN));
        let expected = json!({"timestamp": null, "level": "INFO", "ratio": null, "target": "a"});
        assert_eq!(lines, [expected]);
    }

    #[test]
    fn an_urgent_line_is_written_at_once_after_earlier_ones() {
        let (writer, _guard, output) = start();
        writer.add_line(b"1\n", false);
        writer.add_line(b"2\n", false);
        writer.add_line(b"3\n", true);
        assert_eq!(output.try_iter().collect::<String>(), "1\n2\n3\n");
    }

    #[test]
    fn a_buffered_line_is_written_without_another() {
        let (writer, _guard, output) = start();
        for line in ["1\n", "2\n"] {
            writer.add_line(line.as_bytes(), false);
            assert_eq!(output.recv().unwrap(), line);
        }
    }

    #[test]
    fn lines_are_written_once_the_buffer_is_full() {
        let (writer, _guard, output) = start();
        writer.add_line(&vec![b'x'; FLUSH_BYTES], false);
        assert_eq!(output.try_recv().unwrap().len(), FLUSH_BYTES);
    }

    #[test]
    fn dropping_the_guard_writes_remaining_lines() {
        let (writer, guard, output) = start();
        writer.add_line(b"1\n", false);
        drop(guard);
        assert_eq!(output.try_recv().unwrap(), "1\n");
    }
}
