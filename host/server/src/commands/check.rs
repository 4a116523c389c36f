//! `keywright check`.

use std::{
    io::{self, Write},
    process::ExitCode,
    sync::Arc,
};

use indicatif::ProgressBar;
use keywright_client::progress_bar;
use keywright_core::check::{
    Check, CheckObserver, CheckPart, CheckProgress, CheckSummary, Finding, Subject,
};
use keywright_crypto::X509Certificates;
use serde_json::{Value, json};

use super::output::{self, counted, escaped};
use crate::{
    app::open_database_to_read,
    config::Config,
    keys,
    process::on_threads,
    started::{StartupContext, StartupError},
    telemetry,
};

/// Verifies all stored data, and prints findings.
pub(crate) fn check(config: &Config, as_json: bool) -> Result<ExitCode, StartupError> {
    telemetry::start(&config.log)?;
    on_threads(async {
        let database = open_database_to_read(config).await?;
        let key_ring = keys::unlock_to_read(&config.encryption, &database).await?;
        let check = Check {
            repository: Arc::new(database.clone()),
            sealer: Arc::new(key_ring),
            certificates: Arc::new(X509Certificates),
        };
        let mut report = Report {
            as_json,
            written: Ok(()),
            progress: None,
        };
        let summary = check.run(&mut report).await;
        let summary = summary.while_doing("checking the database")?;
        database.close().await;
        report.print_summary(&summary);
        report.written.while_doing("writing the report")?;
        Ok(output::status(summary.findings > 0))
    })
}

/// Prints findings.
struct Report {
    as_json: bool,
    /// The result of writing so far.
    written: io::Result<()>,
    /// The part being checked, and its progress.
    progress: Option<(CheckPart, ProgressBar)>,
}

impl Report {
    fn print_summary(&mut self, summary: &CheckSummary) {
        self.progress = None;
        let line = if self.as_json {
            json!({
                "credentials": summary.credentials,
                "versions": summary.versions,
                "permissions": summary.permissions,
                "findings": summary.findings,
            })
            .to_string()
        } else {
            format!(
                "checked {} with {}, and {}: {}",
                counted(summary.credentials, "credential"),
                counted(summary.versions, "version"),
                counted(summary.permissions, "permission"),
                counted(summary.findings, "finding"),
            )
        };
        self.write(&line);
    }

    fn write(&mut self, line: &str) {
        if self.written.is_err() {
            return;
        }
        let write = || writeln!(io::stdout(), "{line}");
        self.written = match &self.progress {
            Some((_, progress)) => progress.suspend(write),
            None => write(),
        };
    }
}

impl CheckObserver for Report {
    fn found(&mut self, finding: Finding) {
        let line = if self.as_json {
            json_of(&finding).to_string()
        } else {
            line_of(&finding)
        };
        self.write(&line);
    }

    fn progressed(&mut self, progress: CheckProgress) {
        match &self.progress {
            Some((part, bar)) if *part == progress.part => bar.set_position(progress.position),
            _ => {
                // The bar of the last part leaves its last state.
                self.progress = None;
                let bar = progress_bar(part_name(progress.part), progress.end);
                bar.set_position(progress.position);
                self.progress = Some((progress.part, bar));
            }
        }
    }
}

fn part_name(part: CheckPart) -> &'static str {
    match part {
        CheckPart::Database => "database",
        CheckPart::Credentials => "credentials checked, by sequence number",
        CheckPart::Versions => "versions checked, by sequence number",
        CheckPart::NameIndex => "indexed names checked, by sequence number",
        CheckPart::Permissions => "permissions checked, by sequence number",
    }
}

fn line_of(finding: &Finding) -> String {
    let kind = finding.fault.kind();
    let subject = match &finding.subject {
        Subject::Credential(name) => format!("credential {}", escaped(name)),
        Subject::Database => "database".to_owned(),
        Subject::Permission(id) => format!("permission {id}"),
        Subject::Version {
            name: Some(name),
            id,
        } => format!("credential {} version {id}", escaped(name)),
        Subject::Version { name: None, id } => format!("version {id}"),
    };
    let detail = finding.fault.to_string();
    format!("{kind}: {subject}: {}", escaped(&detail))
}

fn json_of(finding: &Finding) -> Value {
    let (kind, detail) = (finding.fault.kind(), finding.fault.to_string());
    match &finding.subject {
        Subject::Credential(name) => json!({"kind": kind, "credential": name, "detail": detail}),
        Subject::Database => json!({"kind": kind, "detail": detail}),
        Subject::Permission(id) => json!({"kind": kind, "permission_id": id, "detail": detail}),
        Subject::Version { name, id } => {
            json!({"kind": kind, "credential": name, "version_id": id, "detail": detail})
        }
    }
}
