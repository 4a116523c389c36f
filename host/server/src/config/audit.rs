//! The audit trail.

use std::{net::IpAddr, path::PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The audit trail.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct AuditConfig {
    /// Where it goes.
    pub(crate) sink: AuditSinkKind,
    /// The file, where it goes to one.
    pub(crate) file: Option<PathBuf>,
    /// The form of its lines.
    pub(crate) format: AuditLineFormat,
    /// What becomes of requests whose events can't be written.
    pub(crate) on_failure: AuditFailurePolicy,
    /// Whether events in a file are on the disk, not only with the operating system, before a response leaves.
    pub(crate) sync: bool,
    /// The name of this host in events; by default, the one that the operating system knows.
    pub(crate) host: Option<String>,
    /// The addresses of proxies whose `X-Forwarded-For` is believed.
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
    /// To standard output. This is the default: a credential store without a trail must be somebody's decision, and there is
    /// always a standard output, which holds nothing else in production.
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
    /// They go on.
    Continue,
    /// They are refused.
    #[default]
    Refuse,
}
