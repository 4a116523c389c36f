//! `keywright plugin test`.

use std::{
    fmt::Write,
    fs, io,
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::Args;
use keywright_runtime::{ConformanceReport, Vector};

use super::{ComponentArguments, OutputForm, json, now_seconds, pretty, seen};
use crate::{commands::output, started::StartRefused};

/// The exit status if there are findings.
const FOUND: u8 = 3;
/// The extension of the file of test vectors next to a component.
const VECTORS_EXTENSION: &str = "vectors.json";

/// Tests a plugin.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  # Test a plugin, with the vectors in wireguard.vectors.json if it exists
  keywright plugin test wireguard.wasm
  # Print JSON, and limit the duration of each call
  keywright plugin test wireguard.wasm --limits '{\"deadline_ms\": 2000}' --output json")]
pub(crate) struct Test {
    #[command(flatten)]
    component: ComponentArguments,
    /// Test vectors: a JSON array of objects with `parameters`, `random` bytes in hexadecimal, the time as
    /// `now_seconds`, and either the expected `value` or the name of the parameter that is `refused`. Defaults to the
    /// file next to the component with the extension `.vectors.json`, if it exists.
    #[arg(long, value_name = "FILE")]
    vectors: Option<PathBuf>,
}

impl Test {
    pub(super) fn execute(self) -> Result<ExitCode, StartRefused> {
        let vectors = self.vectors()?;
        let candidate = self.component.open_with_notes()?;
        let trial = candidate
            .test(&vectors, now_seconds())
            .map_err(|failure| StartRefused::while_doing("testing the component", failure))?;
        output::print(&match self.component.output {
            OutputForm::Json => pretty(&json(&trial)?),
            OutputForm::Table => table(&trial),
        })?;
        Ok(if trial.is_passed() {
            ExitCode::SUCCESS
        } else {
            ExitCode::from(FOUND)
        })
    }

    fn vectors(&self) -> Result<Vec<Vector>, StartRefused> {
        let read = |path: &Path| {
            let refused = |cause| StartRefused::file("reading the test vectors", path, cause);
            fs::read_to_string(path).map_err(refused)
        };
        let default_path = self.component.file.with_extension(VECTORS_EXTENSION);
        let (path, text) = match &self.vectors {
            Some(path) => (path, read(path)?),
            None => match fs::metadata(&default_path) {
                Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
                _ => (&default_path, read(&default_path)?),
            },
        };
        Vector::parse_all(&text)
            .map_err(|cause| StartRefused::file("reading the test vectors", path, cause))
    }
}

fn table(trial: &ConformanceReport) -> String {
    let mut text = String::new();
    // Writing to a string does not fail.
    for check in &trial.checks {
        let _ = match &check.fault {
            None => writeln!(text, "ok      {}", check.claim),
            Some(fault) => writeln!(text, "FAILED  {}: {}", check.claim, seen(fault)),
        };
    }
    if let Some(entropy) = &trial.entropy {
        let _ = writeln!(
            text,
            "\n{} values were compared, and {} random bits flipped; at least {} bits are drawn for a value",
            entropy.values, entropy.flipped_bits, entropy.drawn_bits
        );
    }
    let _ = writeln!(
        text,
        "\n{:<18} {:>12} {:>12} {:>7}",
        "LIMIT", "USED", "OF", ""
    );
    for limit in &trial.limits {
        let percent = limit.used.saturating_mul(100).div_ceil(limit.max.max(1));
        let _ = writeln!(
            text,
            "{:<18} {:>12} {:>12} {percent:>6}%",
            limit.limit, limit.used, limit.max
        );
    }
    text
}
