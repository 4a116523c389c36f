//! `keywright check-config`.

use std::{fmt::Write, path::Path, process::ExitCode};

use super::output;
use crate::{
    config_check::{self, Extent, Findings},
    process::on_threads,
    started::StartRefused,
};

/// Prints the errors and warnings of a configuration, one per line.
pub(crate) fn check_config(file: &Path, extent: Extent) -> Result<ExitCode, StartRefused> {
    on_threads(async {
        let findings = Box::pin(config_check::check(file, extent)).await?;
        output::print(&report(&findings, file))?;
        Ok(if findings.mistakes.is_empty() {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        })
    })
}

fn report(findings: &Findings, file: &Path) -> String {
    let mut text = String::new();
    // Writing to a string does not fail.
    for warning in &findings.warnings {
        let _ = writeln!(text, "warning: {warning}");
    }
    for mistake in &findings.mistakes {
        let _ = writeln!(text, "{mistake}");
    }
    let file = file.display();
    let _ = match findings.mistakes.len() {
        0 => writeln!(text, "{file} can be used"),
        count => writeln!(text, "{file} can't be used: {count} settings have errors"),
    };
    text
}
