//! Logging: readable text on a terminal, JSON otherwise, unless the format is configured.

mod writer;

use std::io::{self, IsTerminal};

use tracing_subscriber::{
    EnvFilter,
    filter::LevelFilter,
    fmt::{self, MakeWriter},
    layer::SubscriberExt,
    util::SubscriberInitExt,
};

use self::writer::LogWriter;
use crate::{
    config::{LogConfig, LogFormat},
    started::StartRefused,
};

pub(crate) use self::writer::LogGuard;

/// Starts logging to standard error, without buffering.
///
/// The filter is the environment variable `KEYWRIGHT_LOG`, in the syntax of `tracing`, or the configured one if it is not
/// set. Lines of other libraries at `debug` and below are always dropped, because they may contain bodies.
pub(crate) fn start(config: &LogConfig) -> Result<(), StartRefused> {
    start_up_to(LevelFilter::TRACE, config, io::stderr)
}

/// Like [`start`], but drops everything below warnings, whatever the filter.
pub(crate) fn start_quietly(config: &LogConfig) -> Result<(), StartRefused> {
    start_up_to(LevelFilter::WARN, config, io::stderr)
}

/// Like [`start`], but writes many lines of the access log at once. Remaining lines are written when the guard is dropped.
pub(crate) fn start_buffered(config: &LogConfig) -> Result<LogGuard, StartRefused> {
    let started = LogWriter::start(io::stderr());
    let (writer, guard) =
        started.map_err(|cause| StartRefused::while_doing("starting the log's thread", cause))?;
    start_up_to(LevelFilter::TRACE, config, writer)?;
    Ok(guard)
}

fn start_up_to<W>(level_max: LevelFilter, config: &LogConfig, writer: W) -> Result<(), StartRefused>
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    let filter = filter(config)?;
    // Without this limit, every event of a library at a lower level would be passed to the filters.
    let level_max = filter
        .max_level_hint()
        .map_or(level_max, |hint| hint.min(level_max));
    let own_code_or_important = tracing_subscriber::filter::filter_fn(|metadata| {
        *metadata.level() <= tracing::Level::INFO || metadata.target().starts_with("keywright")
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
    let layer = fmt::layer().log_internal_errors(false).with_writer(writer);
    let outcome = if as_json {
        let layer = layer.json().flatten_event(true).with_span_list(false);
        registry.with(layer).try_init()
    } else {
        registry.with(layer).try_init()
    };
    outcome.map_err(|cause| StartRefused::while_doing("starting the log", cause))
}

/// Returns the log filter.
pub(crate) fn filter(config: &LogConfig) -> Result<EnvFilter, StartRefused> {
    let wanted = std::env::var(FILTER_VARIABLE).unwrap_or_else(|_| config.filter.clone());
    EnvFilter::try_new(&wanted).map_err(|cause| {
        StartRefused::while_doing(format!("reading the log filter {wanted:?}"), cause)
    })
}

const FILTER_VARIABLE: &str = "KEYWRIGHT_LOG";
