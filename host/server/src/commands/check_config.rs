//! `keywright check-config`.

use std::{path::Path, process::ExitCode};

use crate::{
    commands,
    config_check::{self, Extent},
    started::StartRefused,
};

/// Prints what is wrong with a configuration, a line for each setting, and what an operator should know of.
pub(crate) fn check_config(file: &Path, extent: Extent) -> Result<ExitCode, StartRefused> {
    commands::on_threads(async {
        let findings = config_check::check(file, extent).await?;
        for warning in &findings.warnings {
            println!("warning: {warning}");
        }
        for mistake in &findings.mistakes {
            println!("{mistake}");
        }
        let file = file.display();
        Ok(match findings.mistakes.len() {
            0 => {
                println!("{file} can be used");
                ExitCode::SUCCESS
            }
            count => {
                println!("{file} can't be used: settings with mistakes: {count}");
                ExitCode::FAILURE
            }
        })
    })
}
