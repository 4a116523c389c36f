//! The audit trail.

use std::{net::IpAddr, path::PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The audit trail.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct AuditConfig {
    /// Where the trail goes.
    pub(crate) sink: AuditSinkKind,
    /// The file, where `sink` is `file`. Made for its owner alone; opened anew at SIGHUP, so that it can be moved away.
    pub(crate) file: Option<PathBuf>,
    /// The form of the trail's lines.
    pub(crate) format: AuditLineFormat,
    /// What becomes of requests whose events can't be written.
    pub(crate) on_failure: AuditFailurePolicy,
    /// Whether events in a file are on the disk, not only with the operating system, before a response leaves.
    pub(crate) sync: bool,
    /// The name of this host in events; the one that the operating system knows where nothing is said.
    pub(crate) host: Option<String>,
    /// The addresses of proxies whose `X-Forwarded-For` is believed when an event says where a request came from.
    pub(crate) trusted_proxies: Vec<IpAddr>,
}

/// Where the audit trail goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum AuditSinkKind {
    /// To a file.
    File,
    /// Nowhere.
    Off,
    /// To standard output, which holds nothing else in production.
    // A credential store without a trail must be somebody's decision, and there is always a standard output.
    #[default]
    Stdout,
}

/// The form of the audit trail's lines.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum AuditLineFormat {
    /// The Common Event Format.
    Cef,
    /// One JSON object a line.
    #[default]
    Json,
}

/// What becomes of requests whose events can't be written.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum AuditFailurePolicy {
    /// They go on, and the log says so.
    Continue,
    /// They are refused, until events can be written again.
    #[default]
    Refuse,
}
