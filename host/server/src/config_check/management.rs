//! The audit trail, logs, metrics, management and background work.

use super::{Findings, access::check_writable_file};
use crate::{
    audit,
    config::{AuditSinkKind, Sections},
    telemetry,
};

pub(super) fn check(sections: &Sections, findings: &mut Findings) {
    if let Some(audit) = &sections.audit {
        findings.taken("audit.file", audit::check(audit));
        if let (AuditSinkKind::File, Some(file)) = (audit.sink, &audit.file) {
            check_writable_file("audit.file", file, findings);
        }
        if audit.sink == AuditSinkKind::Off {
            findings.warning("audit.sink", "accesses and changes are not recorded");
        }
    }
    if let Some(log) = &sections.log {
        findings.taken("log.filter", telemetry::filter(log));
    }
    if let Some(certificates) = &sections.certificates {
        findings.taken("certificates", certificates.settings());
    }
    if let Some(retention) = &sections.retention {
        findings.taken("retention.policies", retention.policies());
    }
    if let Some(management) = &sections.management {
        findings.taken("management.actors", management.server_mode());
        if management.listen.is_none() {
            findings.warning(
                "management.listen",
                "is not set: /health and /metrics are not served, and no metrics are collected",
            );
        }
    }
}
