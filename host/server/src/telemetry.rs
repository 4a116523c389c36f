//! Logs: for people on a terminal, JSON otherwise.

use std::io::IsTerminal;

use tracing_subscriber::{
    EnvFilter, filter::LevelFilter, fmt, layer::SubscriberExt, util::SubscriberInitExt,
};

use crate::{
    config::{LogConfig, LogFormat},
    started::StartRefused,
};

/// Starts logging to standard error.
///
/// The filter is the variable `KEYWRIGHT_LOG` where it is set, in `tracing`'s notation, and else the configuration's.
/// What other libraries say at `debug` and below is never let through, whatever the filter says: they may log bodies.
pub(crate) fn start(config: &LogConfig) -> Result<(), StartRefused> {
    start_up_to(LevelFilter::TRACE, config)
}

/// The same, with nothing that is less than a warning, whatever the filter says.
pub(crate) fn start_quietly(config: &LogConfig) -> Result<(), StartRefused> {
    start_up_to(LevelFilter::WARN, config)
}

fn start_up_to(level_max: LevelFilter, config: &LogConfig) -> Result<(), StartRefused> {
    let filter = filter(config)?;
    let own_code_or_important = tracing_subscriber::filter::filter_fn(|metadata| {
        *metadata.level() <= tracing::Level::INFO || metadata.target().starts_with("keywright")
    });
    let as_json = match config.format {
        LogFormat::Auto => !std::io::stderr().is_terminal(),
        LogFormat::Human => false,
        LogFormat::Json => true,
    };
    // A log that can't be written must not end what logs: reporting that on the same stream would panic.
    let registry = tracing_subscriber::registry()
        .with(filter)
        .with(level_max)
        .with(own_code_or_important);
    let outcome = if as_json {
        registry
            .with(
                fmt::layer()
                    .json()
                    .flatten_event(true)
                    .log_internal_errors(false)
                    .with_writer(std::io::stderr),
            )
            .try_init()
    } else {
        registry
            .with(
                fmt::layer()
                    .log_internal_errors(false)
                    .with_writer(std::io::stderr),
            )
            .try_init()
    };
    outcome.map_err(|cause| StartRefused::while_doing("starting the log", cause))
}

/// What is logged.
pub(crate) fn filter(config: &LogConfig) -> Result<EnvFilter, StartRefused> {
    let wanted = std::env::var(FILTER_VARIABLE).unwrap_or_else(|_| config.filter.clone());
    EnvFilter::try_new(&wanted).map_err(|cause| {
        StartRefused::while_doing(format!("reading the log filter {wanted:?}"), cause)
    })
}

const FILTER_VARIABLE: &str = "KEYWRIGHT_LOG";
