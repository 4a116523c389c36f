use std::{
    fs::{self, Metadata},
    net::IpAddr,
    path::PathBuf,
};

use keywright_api::audit::{AuditFormat, OnAuditFailure};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{findings::Findings, source::Section};
use crate::started::StartupError;

/// The audit trail.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct AuditConfig {
    /// The destination of the trail.
    pub(crate) sink: AuditSinkKind,
    /// The file, if `sink` is `file`. It is created for its owner only, and reopened on SIGHUP, so that it can be
    /// rotated.
    pub(crate) file: Option<PathBuf>,
    /// The format of the trail's lines.
    pub(crate) format: AuditFormat,
    /// How requests whose events can't be written are handled.
    pub(crate) on_failure: OnAuditFailure,
    /// Whether events are flushed to disk, not only written to the file, before a response is sent. Requires a regular file
    /// in a folder that the server can read.
    pub(crate) sync: bool,
    /// This host's name in events. Defaults to the operating system's host name.
    pub(crate) host: Option<String>,
    /// The addresses of proxies whose `X-Forwarded-For` header is trusted, for events and for the limit on logins.
    pub(crate) trusted_proxies: Vec<IpAddr>,
}

/// The destination of the audit trail.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum AuditSinkKind {
    /// A file.
    File,
    /// No audit trail.
    Off,
    /// Standard output, which contains nothing else in production.
    // Running without a trail must be an explicit decision, and standard output always exists.
    #[default]
    Stdout,
}

impl Section for AuditConfig {
    fn paths_mut(&mut self) -> Vec<&mut PathBuf> {
        self.file.iter_mut().collect()
    }
}

impl AuditConfig {
    /// Returns the trusted proxies, with IPv4-mapped addresses as IPv4, like the addresses of peers.
    pub(crate) fn trusted_proxies(&self) -> Vec<IpAddr> {
        let proxies = self.trusted_proxies.iter();
        proxies.map(IpAddr::to_canonical).collect()
    }

    /// Checks the section.
    pub(crate) fn check(&self, findings: &mut Findings) {
        // An invalid sink was removed, so `self.sink` is the default.
        if !findings.has_mistake("audit.sink") {
            findings.ok_or_report("audit.file", self.check_file());
        }
        if let (AuditSinkKind::File, Some(file)) = (self.sink, &self.file) {
            findings.check_writable_file("audit.file", file);
            let is_device = |found: Metadata| !found.is_file() && !found.is_dir();
            if self.sync && fs::metadata(file).is_ok_and(is_device) {
                findings.mistake("audit.sync", "requires that audit.file is a regular file");
            }
        }
        if self.sink == AuditSinkKind::Off {
            findings.warning("audit.sink", "accesses and changes are not recorded");
        }
    }

    /// Checks that a file is configured if and only if the sink needs one, and flushed only if there is one.
    pub(crate) fn check_file(&self) -> Result<(), StartupError> {
        match (self.sink, &self.file) {
            (AuditSinkKind::File, None) => Err(StartupError::new(
                "audit.file: is required, because audit.sink is \"file\"",
            )),
            (AuditSinkKind::Off | AuditSinkKind::Stdout, Some(_)) => Err(StartupError::new(
                "audit.file: can only be set if audit.sink is \"file\"",
            )),
            (AuditSinkKind::Off | AuditSinkKind::Stdout, None) if self.sync => Err(
                StartupError::new("audit.sync: can only be set if audit.sink is \"file\""),
            ),
            _ => Ok(()),
        }
    }
}
