//! The cost of the sandbox: generating a password in the plugin, compared with a native call of the same function.

use std::{sync::Arc, time::Instant};

use aws_lc_rs::rand;
use chrono::{DateTime, Utc};
use keywright_core::{credential::Parameters, ports::Generator};
use keywright_plugin_support::HostRandom;
use keywright_runtime::SystemRandom;
use serde_json::Map;

use crate::{
    Outcome, plugin,
    statistics::{Sample, micros, number},
    table::{Aim, Table, no_aim},
};

/// Measures single calls, each in a fresh instance and including the switch to a plugin thread and back; and successive
/// calls on one thread, whose time is the sandbox's own.
pub(crate) fn measure() -> Outcome<Table> {
    tokio::runtime::Runtime::new()?.block_on(async {
        let generator = plugin::load_shipped("password", Arc::new(SystemRandom))?;
        let parameters = generator.normalize(&Parameters::new(Map::new())).await?;
        let mut native = Vec::new();
        let mut guest = Vec::new();
        let mut guest_in_turn = Vec::new();
        for _ in 0..ROUNDS {
            native.extend(call_natively(&parameters)?);
            let task = call_one_by_one(Arc::clone(&generator), parameters.clone());
            guest.extend(tokio::spawn(task).await??);
            guest_in_turn.push(call_at_once(&generator, &parameters).await?);
        }
        let (native, guest) = (Sample::new(native), Sample::new(guest));
        let mut table = Table::new(
            "one password, a fresh instance each, µs",
            &["", "guest", "native", "overhead", "aim"],
        );
        for (what, percent, aim) in [
            ("a call, p50", 50, Some(Aim::AtMost(50.0))),
            ("a call, p99", 99, None),
        ] {
            let (guest, native) = (guest.percentile(percent), native.percentile(percent));
            row(&mut table, what, guest, native, aim);
        }
        let guest = Sample::new(guest_in_turn).median();
        row(
            &mut table,
            "of many that wait in turn for one thread, each",
            guest,
            native.median(),
            None,
        );
        Ok(table)
    })
}

fn row(table: &mut Table, what: &str, guest: f64, native: f64, aim: Option<Aim>) {
    table.row([
        what.to_owned(),
        format!("{guest:.1}"),
        format!("{native:.1}"),
        format!("{:.1}", guest - native),
        aim.map_or_else(no_aim, |aim| aim.verdict(guest - native)),
    ]);
}

/// The time of each call.
fn call_natively(parameters: &Parameters) -> Outcome<Vec<f64>> {
    let parameters = parameters.to_json();
    let mut times = Vec::new();
    for _ in 0..CALLS_A_ROUND {
        let begun = Instant::now();
        let mut random = HostRandom::new(random_bytes);
        keywright_plugin_password::generate::generate(&parameters, "{}", &mut random)
            .map_err(|failure| format!("the native generator failed: {failure:?}"))?;
        times.push(micros(begun.elapsed()));
    }
    Ok(times)
}

/// The time of each call.
async fn call_one_by_one(
    generator: Arc<dyn Generator>,
    parameters: Parameters,
) -> Outcome<Vec<f64>> {
    let mut times = Vec::new();
    for _ in 0..CALLS_A_ROUND {
        let begun = Instant::now();
        generator
            .generate(&parameters, DateTime::<Utc>::UNIX_EPOCH, None)
            .await?;
        times.push(micros(begun.elapsed()));
    }
    Ok(times)
}

/// The time of all calls, divided by their number.
async fn call_at_once(generator: &Arc<dyn Generator>, parameters: &Parameters) -> Outcome<f64> {
    let begun = Instant::now();
    let calls: Vec<_> = (0..CALLS_AT_ONCE)
        .map(|_| {
            let (generator, parameters) = (Arc::clone(generator), parameters.clone());
            tokio::spawn(async move {
                generator
                    .generate(&parameters, DateTime::<Utc>::UNIX_EPOCH, None)
                    .await
            })
        })
        .collect();
    for call in calls {
        call.await??;
    }
    Ok(micros(begun.elapsed()) / number(CALLS_AT_ONCE))
}

/// Uses the host's random source for guests.
fn random_bytes(count: u64) -> Vec<u8> {
    let mut bytes = vec![0; usize::try_from(count).unwrap_or_default()];
    // Bytes that could not be filled would only be measured, never used.
    let _ = rand::fill(&mut bytes);
    bytes
}

const ROUNDS: usize = 20;
const CALLS_A_ROUND: usize = 250;
/// The capacity of the queue.
const CALLS_AT_ONCE: usize = 250;
