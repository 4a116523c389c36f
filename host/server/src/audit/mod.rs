//! The sinks of the audit trail, and their configuration.

mod file;
mod lines;
mod standard_output;

use std::sync::Arc;

use keywright_api::audit::{AuditFormat, AuditSettings, AuditSink, AuditTrail, OnAuditFailure};
use keywright_core::ports::Clock;
use tokio::signal::unix::{SignalKind, signal};

use self::{file::FileSink, standard_output::StandardOutputSink};
use crate::{
    config::{AuditConfig, AuditFailurePolicy, AuditLineFormat, AuditSinkKind},
    started::StartRefused,
};

/// Starts the audit trail, unless it is off.
pub(crate) fn start(
    config: &AuditConfig,
    clock: Arc<dyn Clock>,
) -> Result<Option<Arc<AuditTrail>>, StartRefused> {
    let Some(sink) = sink(config)? else {
        tracing::warn!("the audit trail is off: reads and changes are not recorded");
        return Ok(None);
    };
    let settings = AuditSettings {
        format: match config.format {
            AuditLineFormat::Cef => AuditFormat::Cef,
            AuditLineFormat::Json => AuditFormat::Json,
        },
        on_failure: match config.on_failure {
            AuditFailurePolicy::Continue => OnAuditFailure::Continue,
            AuditFailurePolicy::Refuse => OnAuditFailure::Refuse,
        },
        host: config.host.clone().unwrap_or_else(own_host_name),
        trusted_proxies: config
            .trusted_proxies
            .iter()
            .map(std::net::IpAddr::to_canonical)
            .collect(),
        write_time_max: AuditSettings::WRITE_TIME_MAX,
        unwritten_bytes_max: AuditSettings::UNWRITTEN_BYTES_MAX,
    };
    let trail = AuditTrail::start(settings, sink, clock)
        .map_err(|cause| StartRefused::while_doing("starting the audit trail's thread", cause))?;
    let trail = Arc::new(trail);
    reopen_on_hangup(&trail)?;
    Ok(Some(trail))
}

/// Reopens the trail on SIGHUP, for log rotation.
fn reopen_on_hangup(trail: &Arc<AuditTrail>) -> Result<(), StartRefused> {
    let mut hangup = signal(SignalKind::hangup())
        .map_err(|cause| StartRefused::while_doing("listening for SIGHUP", cause))?;
    let trail = Arc::clone(trail);
    tokio::spawn(async move {
        while hangup.recv().await.is_some() {
            trail.reopen();
        }
    });
    Ok(())
}

/// Checks that a file is configured if and only if the sink needs one.
pub(crate) fn check(config: &AuditConfig) -> Result<(), StartRefused> {
    match (config.sink, &config.file) {
        (AuditSinkKind::File, None) => Err(StartRefused::new(
            "audit.sink is \"file\", so audit.file is required",
        )),
        (AuditSinkKind::Off | AuditSinkKind::Stdout, Some(_)) => Err(StartRefused::new(
            "audit.file can only be set if audit.sink is \"file\"",
        )),
        _ => Ok(()),
    }
}

fn sink(config: &AuditConfig) -> Result<Option<Box<dyn AuditSink>>, StartRefused> {
    check(config)?;
    match (config.sink, &config.file) {
        (AuditSinkKind::File, Some(path)) => {
            let sink = FileSink::open(path.clone(), config.sync)
                .map_err(|cause| StartRefused::file("opening the audit trail", path, cause))?;
            Ok(Some(Box::new(sink)))
        }
        (AuditSinkKind::Stdout, _) => {
            let sink = StandardOutputSink::open()
                .map_err(|cause| StartRefused::while_doing("opening standard output", cause))?;
            Ok(Some(Box::new(sink)))
        }
        (AuditSinkKind::File | AuditSinkKind::Off, _) => Ok(None),
    }
}

fn own_host_name() -> String {
    rustix::system::uname()
        .nodename()
        .to_string_lossy()
        .into_owned()
}
