//! `keywright plugin bench`.

use std::{process::ExitCode, sync::Arc, time::Duration};

use clap::Args;
use keywright_runtime::{Quantiles, Speed, SystemRandom};
use serde_json::{Map, Value, json};

use super::{ComponentArguments, OutputForm, now_seconds, object, pretty};
use crate::{commands::output, started::StartRefused};

/// Measures calls.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  # Measure 200 calls, with the first example of the plugin's schema
  keywright plugin bench wireguard.wasm
  # Measure fewer, with parameters, for a program
  keywright plugin bench wireguard.wasm --calls 20 --parameters '{\"preshared_key\": true}' --output json")]
pub(crate) struct Bench {
    #[command(flatten)]
    component: ComponentArguments,
    /// Parameters of the request: a JSON object. Defaults to the first example in the plugin's schema, or `{}` if there
    /// is none.
    #[arg(long, value_name = "JSON", value_parser = object)]
    parameters: Option<Map<String, Value>>,
    /// Number of calls to measure
    #[arg(long, value_name = "COUNT", default_value = "200", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    calls: u32,
}

impl Bench {
    pub(super) fn execute(self) -> Result<ExitCode, StartRefused> {
        let candidate = self.component.open()?;
        let random = Arc::new(SystemRandom);
        let speed = candidate
            .measure(self.parameters, self.calls, now_seconds(), random)
            .map_err(|failure| StartRefused::while_doing("making a value", failure))?;
        output::print(&match self.component.output {
            OutputForm::Json => pretty(&json!({
                "calls": speed.calls,
                "instantiation": document(speed.instantiation),
                "overhead": document(speed.overhead),
                "call": document(speed.call),
            })),
            OutputForm::Table => table(speed),
        })?;
        Ok(ExitCode::SUCCESS)
    }
}

fn document(quantiles: Quantiles) -> Value {
    json!({
        "p50_us": microseconds(quantiles.p50),
        "p99_us": microseconds(quantiles.p99),
    })
}

fn table(speed: Speed) -> String {
    let line = |what: &str, quantiles: Quantiles| {
        let [p50, p99] = [quantiles.p50, quantiles.p99].map(microseconds);
        format!("{what:<50} {p50:>10.1} {p99:>10.1}\n")
    };
    format!(
        "{:<50} {:>10} {:>10}\n{}{}{}",
        format!("microseconds, of {} calls", speed.calls),
        "p50",
        "p99",
        line("making an instance", speed.instantiation),
        line(
            "the overhead of a call, in an instance of its own",
            speed.overhead
        ),
        line("making a value, in an instance of its own", speed.call),
    )
}

fn microseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1_000_000.0
}
