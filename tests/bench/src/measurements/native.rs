//! Plugins compared with native calls of the same functions: the cost of the sandbox for a password, and the generation of
//! RSA-2048 key pairs, which is also compared with the `openssl` program.

use std::{
    process::{Command, Stdio},
    sync::Arc,
    time::Instant,
};

use aws_lc_rs::rand;
use chrono::{DateTime, Utc};
use keywright_core::{credential::Parameters, ports::Generator};
use keywright_plugin_support::{Generator as _, HostRandom};
use keywright_runtime::SystemRandom;
use serde_json::Map;

use crate::{
    plugin::{self, RepeatableRandom},
    statistics::{Outcome, Sample, micros, millis, number},
    table::{Table, Threshold, no_goal},
};

/// Measures single calls, each in a fresh instance and including the switch to a plugin thread and back. Also measures
/// queued calls on one thread, whose time is spent in the sandbox alone.
pub(crate) fn measure_password() -> Outcome<Table> {
    tokio::runtime::Runtime::new()?.block_on(async {
        let generator = plugin::load_shipped("password", Arc::new(SystemRandom))?;
        let parameters = generator.normalize(Parameters::new(Map::new())).await?;
        let mut native = Vec::new();
        let mut guest = Vec::new();
        let mut guest_queued = Vec::new();
        for _ in 0..ROUNDS {
            native.extend(call_natively(&parameters)?);
            let task = call_one_by_one(Arc::clone(&generator), parameters.clone());
            guest.extend(tokio::spawn(task).await??);
            guest_queued.push(call_queued(&generator, &parameters).await?);
        }
        let (native, guest) = (Sample::new(native), Sample::new(guest));
        let mut table = Table::new(
            "one password, in a fresh instance, µs",
            &["", "guest", "native", "overhead", "goal"],
        );
        for (what, percent, threshold) in [
            ("a call, p50", 50, Some(Threshold::AtMost(50.0))),
            ("a call, p99", 99, None),
        ] {
            let (guest, native) = (guest.percentile(percent), native.percentile(percent));
            password_row(&mut table, what, guest, native, threshold);
        }
        let guest = Sample::new(guest_queued).median();
        password_row(
            &mut table,
            "one of many calls queued for one thread",
            guest,
            native.median(),
            None,
        );
        Ok(table)
    })
}

fn password_row(
    table: &mut Table,
    what: &str,
    guest: f64,
    native: f64,
    threshold: Option<Threshold>,
) {
    table.row([
        what.to_owned(),
        format!("{guest:.1}"),
        format!("{native:.1}"),
        format!("{:.1}", guest - native),
        threshold.map_or_else(no_goal, |threshold| threshold.verdict(guest - native)),
    ]);
}

/// Returns the time of each call.
fn call_natively(parameters: &Parameters) -> Outcome<Vec<f64>> {
    let parameters = parameters.to_json();
    let mut times = Vec::new();
    for _ in 0..CALLS_A_ROUND {
        let begun = Instant::now();
        let mut random = HostRandom::new(random_bytes);
        keywright_plugin_password::generate::Password::generate(&parameters, "{}", &mut random)
            .map_err(|failure| format!("the native generator failed: {failure:?}"))?;
        times.push(micros(begun.elapsed()));
    }
    Ok(times)
}

/// Returns the time of each call.
async fn call_one_by_one(
    generator: Arc<dyn Generator>,
    parameters: Parameters,
) -> Outcome<Vec<f64>> {
    let mut times = Vec::new();
    for _ in 0..CALLS_A_ROUND {
        let begun = Instant::now();
        generator
            .generate(&parameters, DateTime::<Utc>::UNIX_EPOCH, None, Vec::new())
            .await?;
        times.push(micros(begun.elapsed()));
    }
    Ok(times)
}

/// Returns the time of all calls, divided by their number.
async fn call_queued(generator: &Arc<dyn Generator>, parameters: &Parameters) -> Outcome<f64> {
    let begun = Instant::now();
    let calls: Vec<_> = (0..CALLS_QUEUED)
        .map(|_| {
            let (generator, parameters) = (Arc::clone(generator), parameters.clone());
            tokio::spawn(async move {
                generator
                    .generate(&parameters, DateTime::<Utc>::UNIX_EPOCH, None, Vec::new())
                    .await
            })
        })
        .collect();
    for call in calls {
        call.await??;
    }
    Ok(micros(begun.elapsed()) / number(CALLS_QUEUED))
}

/// Uses the host's random source for guests.
fn random_bytes(count: u64) -> Vec<u8> {
    let mut bytes = vec![0; usize::try_from(count).unwrap_or_default()];
    // A failure is ignored, because the bytes are only measured and never used as a secret.
    let _ = rand::fill(&mut bytes);
    bytes
}

const ROUNDS: usize = 20;
const CALLS_A_ROUND: usize = 250;
/// The default maximum number of waiting calls of one caller.
const CALLS_QUEUED: usize = 128;

/// Measures the guest, the native function and `openssl` alternately. The search for primes takes a random time, so the
/// guest and the native function get the same random bytes and do the same work. `openssl` uses its own random numbers, so
/// its figures need many rounds.
pub(crate) fn measure_rsa() -> Outcome<Table> {
    let random = RepeatableRandom::new();
    let generator = plugin::load_shipped("rsa", Arc::new(random.clone()))?;
    let runtime = tokio::runtime::Runtime::new()?;
    let parameters = runtime.block_on(generator.normalize(Parameters::new(Map::new())))?;
    let mut guest = Vec::new();
    let mut native = Vec::new();
    let mut openssl = Vec::new();
    let mut openssl_alone = Vec::new();
    for round in 0..RSA_ROUNDS {
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
            "one RSA-2048 key pair, {RSA_ROUNDS} rounds, ms (starting openssl takes {:.1} of its time)",
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
    rsa_row(
        &mut table,
        "mean",
        samples.each_ref().map(Sample::mean),
        true,
    );
    rsa_row(
        &mut table,
        "median",
        samples.each_ref().map(Sample::median),
        false,
    );
    Ok(table)
}

fn rsa_row(table: &mut Table, what: &str, [guest, native, openssl]: [f64; 3], has_goal: bool) {
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
    keywright_plugin_rsa::generate::Rsa::generate(&parameters.to_json(), "{}", &mut bytes)
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

const RSA_ROUNDS: u64 = 100;
