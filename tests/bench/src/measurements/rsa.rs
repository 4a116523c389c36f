//! RSA-2048 key pairs made by the plugin, beside the same crate called natively and the `openssl` program.

use std::{
    process::{Command, Stdio},
    sync::Arc,
    time::Instant,
};

use chrono::{DateTime, Utc};
use keywright_core::{credential::Parameters, ports::Generator};
use keywright_plugin_support::HostRandom;
use serde_json::Map;

use crate::{
    Outcome,
    plugin::{self, RepeatableRandom},
    statistics::{Sample, millis},
    table::{Aim, Table, no_aim},
};

/// Measures all three in turns. The search for primes is a matter of luck, so guest and native are given the same random
/// bytes each time, and do the same work; `openssl` has its own luck, and many turns.
pub(crate) fn measure() -> Outcome<Table> {
    let random = RepeatableRandom::new();
    let generator = plugin::load_shipped("rsa", Arc::new(random.clone()))?;
    let runtime = tokio::runtime::Runtime::new()?;
    let parameters = runtime.block_on(generator.normalize(&Parameters::new(Map::new())))?;
    let mut guest = Vec::new();
    let mut native = Vec::new();
    let mut openssl = Vec::new();
    let mut openssl_alone = Vec::new();
    for turn in 0..TURNS {
        random.begin(turn);
        let (time, in_guest) = timed(|| runtime.block_on(make(&generator, &parameters)))?;
        guest.push(time);
        random.begin(turn);
        let (time, natively) = timed(|| make_natively(&random, &parameters))?;
        native.push(time);
        if in_guest != natively {
            return Err("the same random bytes gave another key in the guest".into());
        }
        openssl.push(timed(|| run_openssl(&["genrsa", "2048"]))?.0);
        openssl_alone.push(timed(|| run_openssl(&["version"]))?.0);
    }
    let samples = [guest, native, openssl].map(Sample::new);
    let mut table = Table::new(
        format!(
            "one RSA-2048 key pair, {TURNS} turns, ms (starting openssl takes {:.1} of its time)",
            Sample::new(openssl_alone).median()
        ),
        &[
            "",
            "guest",
            "native",
            "openssl",
            "guest/native",
            "aim",
            "guest/openssl",
            "aim",
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

fn row(table: &mut Table, what: &str, [guest, native, openssl]: [f64; 3], has_aim: bool) {
    let verdict = |aim: Aim, ratio| {
        if has_aim {
            aim.verdict(ratio)
        } else {
            no_aim()
        }
    };
    table.row([
        what.to_owned(),
        format!("{guest:.1}"),
        format!("{native:.1}"),
        format!("{openssl:.1}"),
        format!("{:.2}", guest / native),
        verdict(Aim::AtMost(1.7), guest / native),
        format!("{:.2}", guest / openssl),
        verdict(Aim::Below(1.0), guest / openssl),
    ]);
}

/// How long something takes, in milliseconds, and what it gives.
fn timed<T>(work: impl FnOnce() -> Outcome<T>) -> Outcome<(f64, T)> {
    let begun = Instant::now();
    let made = work()?;
    Ok((millis(begun.elapsed()), made))
}

async fn make(generator: &Arc<dyn Generator>, parameters: &Parameters) -> Outcome<String> {
    let value = generator
        .generate(parameters, DateTime::<Utc>::UNIX_EPOCH, None)
        .await?;
    Ok(value.expose().to_owned())
}

fn make_natively(random: &RepeatableRandom, parameters: &Parameters) -> Outcome<String> {
    let mut bytes = HostRandom::new(|count| random.bytes(count));
    keywright_plugin_rsa::generate::generate(&parameters.to_json(), "{}", &mut bytes)
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
        return Err(format!("openssl ended with {status}").into());
    }
    Ok(())
}

const TURNS: u64 = 100;
