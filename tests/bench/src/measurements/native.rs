//! The generation of RSA-2048 key pairs by the plugin, compared with native calls of the same function and with the `openssl`
//! program.

use std::{
    process::{Command, Stdio},
    sync::Arc,
    time::Instant,
};

use chrono::{DateTime, Utc};
use keywright_core::{credential::Parameters, ports::Generator};
use keywright_plugin_support::{Generator as _, HostRandom};
use serde_json::Map;

use crate::{
    plugin::{self, RepeatableRandom},
    statistics::{Outcome, Sample, millis},
    table::{Table, Threshold, no_goal},
};

/// Measures the guest, the native function and `openssl` alternately. The search for primes takes a random time, so the
/// guest and the native function get the same random bytes and do the same work. `openssl` uses its own random numbers, so
/// its figures need many rounds.
pub(crate) fn measure() -> Outcome<Table> {
    let random = RepeatableRandom::new();
    let generator = plugin::load_shipped("rsa", Arc::new(random.clone()))?;
    let runtime = tokio::runtime::Runtime::new()?;
    let parameters = runtime.block_on(generator.normalize(Parameters::new(Map::new())))?;
    let mut guest = Vec::new();
    let mut native = Vec::new();
    let mut openssl = Vec::new();
    let mut openssl_alone = Vec::new();
    for round in 0..ROUNDS {
        random.begin(round);
        let (time, in_guest) = timed(|| runtime.block_on(make(&generator, &parameters)))?;
        guest.push(time);
        random.begin(round);
        let (time, natively) = timed(|| make_natively(&random, &parameters))?;
        native.push(time);
        if in_guest != natively {
            return Err("the guest generated another key from the same random bytes".into());
        }
        openssl.push(timed(|| run_openssl(&["genrsa", "2048"]))?.0);
        openssl_alone.push(timed(|| run_openssl(&["version"]))?.0);
    }
    let samples = [guest, native, openssl].map(Sample::new);
    let mut table = Table::new(
        format!(
            "one RSA-2048 key pair, {ROUNDS} rounds, ms (starting openssl takes {:.1} of its time)",
            Sample::new(openssl_alone).median()
        ),
        &[
            "",
            "guest",
            "native",
            "openssl",
            "guest/native",
            "goal",
            "guest/openssl",
            "goal",
        ],
    );
    row(
        &mut table,
        "mean",
        samples.each_ref().map(Sample::mean),
        true,
    );
    row(
        &mut table,
        "median",
        samples.each_ref().map(Sample::median),
        false,
    );
    Ok(table)
}

fn row(table: &mut Table, what: &str, [guest, native, openssl]: [f64; 3], has_goal: bool) {
    let verdict = |threshold: Threshold, ratio| {
        if has_goal {
            threshold.verdict(ratio)
        } else {
            no_goal()
        }
    };
    table.row([
        what.to_owned(),
        format!("{guest:.1}"),
        format!("{native:.1}"),
        format!("{openssl:.1}"),
        format!("{:.2}", guest / native),
        verdict(Threshold::AtMost(1.7), guest / native),
        format!("{:.2}", guest / openssl),
        verdict(Threshold::Below(1.0), guest / openssl),
    ]);
}

/// Returns the time of some work, in milliseconds, and its result.
fn timed<T>(work: impl FnOnce() -> Outcome<T>) -> Outcome<(f64, T)> {
    let begun = Instant::now();
    let made = work()?;
    Ok((millis(begun.elapsed()), made))
}

async fn make(generator: &Arc<dyn Generator>, parameters: &Parameters) -> Outcome<String> {
    let value = generator
        .generate(parameters, DateTime::<Utc>::UNIX_EPOCH, None, Vec::new())
        .await?;
    Ok(value.expose().to_owned())
}

fn make_natively(random: &RepeatableRandom, parameters: &Parameters) -> Outcome<String> {
    let mut bytes = HostRandom::new(|count| random.bytes(count));
    keywright_plugin_rsa::Rsa::generate(&parameters.to_json(), "{}", &mut bytes)
        .map_err(|failure| format!("the native generator failed: {failure:?}").into())
}

fn run_openssl(arguments: &[&str]) -> Outcome<()> {
    let status = Command::new("openssl")
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()?;
    if !status.success() {
        return Err(format!("openssl exited with {status}").into());
    }
    Ok(())
}

const ROUNDS: u64 = 100;
