//! `keywright plugin run`.

use std::{process::ExitCode, sync::Arc};

use clap::Args;
use keywright_runtime::SystemRandom;
use serde_json::json;

use super::{ComponentArguments, OutputForm, ParameterArguments, now_seconds, pretty};
use crate::{commands::output, started::StartRefused};

/// Generates one value.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  # Generate a value without parameters and hide its secret parts
  keywright plugin run wireguard.wasm
  # Generate a value with parameters and show all of it
  keywright plugin run wireguard.wasm --parameters '{\"preshared_key\": true}' --reveal")]
pub(crate) struct Run {
    #[command(flatten)]
    component: ComponentArguments,
    #[command(flatten)]
    asked: ParameterArguments,
    /// Also show the secret parts
    #[arg(long)]
    reveal: bool,
}

impl Run {
    pub(super) fn execute(self) -> Result<ExitCode, StartRefused> {
        let candidate = self.component.open_with_notes()?;
        let run = candidate
            .run(self.asked.parameters, now_seconds(), Arc::new(SystemRandom))
            .map_err(|failure| StartRefused::while_doing("making a value", failure))?;
        let value = if self.reveal { run.value } else { run.redacted };
        output::print(&match self.component.output {
            OutputForm::Json => pretty(&json!({
                "parameters": run.parameters,
                "value": value,
                "duration_ms": run.took.as_secs_f64() * 1_000.0,
            })),
            OutputForm::Table => pretty(&value),
        })?;
        Ok(ExitCode::SUCCESS)
    }
}
