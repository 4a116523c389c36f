//! The commands that call a plugin: `keywright plugin run`, `bench` and `test`, and `tested` for building a release.

use std::{
    cmp::Reverse,
    collections::BTreeSet,
    fmt::Write,
    fs::{self, File},
    io::{self, Read},
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
    time::Duration,
};

use clap::Args;
use indicatif::ProgressBar;
use keywright_client::json_object;
use keywright_runtime::{
    ConformanceReport, Effect, Limits, Mismatch, Operation, Outcome, PluginCall, PluginUnderTest,
    Prediction, Quantiles, Speed, SystemRandom, TestInputs, TestRandom, UpgradeReport, Vector,
};
use serde::Serialize;
use serde_json::{Map, Value, json};
use similar::TextDiff;

use super::{
    super::output::{self, counted, escaped},
    arguments::{
        ComponentArguments, OutputForm, inputs, json, now_seconds, pretty, seconds, to_json,
        uncached_host,
    },
};
use crate::{
    process::{now, on_threads},
    started::{StartupContext, StartupError},
};

/// Makes one call.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  # Generate a value without parameters and redact its secret parts
  keywright plugin run wireguard.wasm
  # Generate a value with parameters and show all of it
  keywright plugin run wireguard.wasm --parameters '{\"preshared_key\": true}' --reveal
  # Generate the same value each time
  keywright plugin run wireguard.wasm --random seed:any --now 2026-01-31T12:00:00Z")]
pub(crate) struct Run {
    #[command(flatten)]
    component: ComponentArguments,
    /// Parameters of the request: a JSON object. With `--recover`, the stored parameters.
    #[arg(long, value_name = "JSON", value_parser = json_object)]
    parameters: Option<Map<String, Value>>,
    /// Credentials that the parameters name as inputs, instead of the plugin's examples: a JSON object such as
    /// `{"/db/user": {"type": "user", "value": {"username": "ada"}}}`
    #[arg(long, value_name = "JSON", value_parser = inputs, conflicts_with_all = ["set", "recover", "document"])]
    inputs: Option<TestInputs>,
    /// Value to set instead of generating one: JSON
    #[arg(long, value_name = "JSON", value_parser = json, conflicts_with = "parameters")]
    set: Option<Value>,
    /// Stored value from which to recover the parameters: JSON
    #[arg(long, value_name = "JSON", value_parser = json, conflicts_with = "set")]
    recover: Option<Value>,
    /// Document in which a resolver finds the references: JSON
    #[arg(long, value_name = "JSON", value_parser = json, conflicts_with_all = ["parameters", "set", "recover"])]
    document: Option<Value>,
    /// Random bytes for the plugin: hexadecimal digits, or `seed:TEXT` for any number of bytes. Default: new random
    /// bytes.
    #[arg(long, value_name = "BYTES")]
    random: Option<TestRandom>,
    /// Time of the call: RFC 3339, or seconds since 1970. Default: the current time.
    #[arg(long, value_name = "TIME", value_parser = seconds)]
    now: Option<u64>,
    /// Also show the secret parts
    #[arg(long)]
    reveal: bool,
}

impl Run {
    pub(super) fn execute(self, progress: &ProgressBar) -> Result<ExitCode, StartupError> {
        let plugin = self.component.open_with_notes(progress)?;
        if plugin.is_resolver() && self.document.is_none() {
            return Err(StartupError::new(
                "the component is a resolver; pass the document in which it finds references, with --document",
            ));
        }
        check_role(&plugin, self.document.as_ref())?;
        let (call, doing) = match (self.set, self.recover, self.document) {
            (Some(value), ..) => (PluginCall::Accept(value), "setting the value"),
            (_, Some(value), _) => {
                let parameters = self.parameters;
                (
                    PluginCall::Recover { parameters, value },
                    "recovering the parameters",
                )
            }
            (.., Some(document)) => (PluginCall::FindReferences(document), "finding references"),
            (None, None, None) => {
                let call = PluginCall::Generate {
                    parameters: self.parameters.unwrap_or_default(),
                    inputs: self.inputs.unwrap_or_default(),
                };
                (call, "generating a value")
            }
        };
        let random = self.random.unwrap_or(TestRandom::System);
        let now = self.now.unwrap_or_else(now_seconds);
        let run = plugin.run(&call, now, &random).while_doing(doing)?;
        progress.finish_and_clear();
        let mut results = if self.reveal {
            run.results
        } else {
            run.redacted
        };
        let canonical = results.remove("canonical");
        output::print(&match self.component.output {
            OutputForm::Json => {
                results.extend(canonical.map(|canonical| ("parameters".to_owned(), canonical)));
                for (name, time) in [
                    ("expires_at", run.lifetime.expires_at),
                    ("rotate_at", run.lifetime.rotate_at),
                ] {
                    results.extend(time.map(|time| (name.to_owned(), json!(time.to_rfc3339()))));
                }
                let duration_ms = run.took.as_secs_f64() * 1_000.0;
                results.insert("duration_ms".to_owned(), json!(duration_ms));
                pretty(&Value::Object(results))
            }
            OutputForm::Table => results.values().map(pretty).collect(),
        })?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Measures calls.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  # Measure 200 calls, with the first example of the plugin's schema
  keywright plugin bench wireguard.wasm
  # Measure 20 calls with parameters, and print JSON
  keywright plugin bench wireguard.wasm --calls 20 --parameters '{\"preshared_key\": true}' --output json
  # Measure a resolver
  keywright plugin bench interpolation.wasm --document '{\"a\": [{\"credentials\": {\"credhub-ref\": \"((/b))\"}}]}'")]
pub(crate) struct Bench {
    #[command(flatten)]
    component: ComponentArguments,
    /// Parameters of the request: a JSON object. Default: the first example in the plugin's schema, or `{}` if there
    /// is none.
    #[arg(long, value_name = "JSON", value_parser = json_object)]
    parameters: Option<Map<String, Value>>,
    /// Document in which a resolver finds the references: JSON. Default: `{}`.
    #[arg(long, value_name = "JSON", value_parser = json, conflicts_with = "parameters")]
    document: Option<Value>,
    /// Number of calls to measure
    #[arg(long, value_name = "COUNT", default_value = "200", value_parser = calls)]
    calls: u32,
}

impl Bench {
    pub(super) fn execute(self, progress: &ProgressBar) -> Result<ExitCode, StartupError> {
        let plugin = self.component.open(progress)?;
        check_role(&plugin, self.document.as_ref())?;
        let random = Arc::new(SystemRandom);
        let finds_references =
            self.document.is_some() || self.parameters.is_none() && plugin.is_resolver();
        let (doing, speed) = if finds_references {
            let document = self.document.unwrap_or_else(|| json!({}));
            let speed = plugin.measure_resolver(&document, self.calls, random);
            ("finding references", speed)
        } else {
            let now = now_seconds();
            let speed = plugin.measure_generator(self.parameters, self.calls, now, random);
            ("generating a value", speed)
        };
        let speed = speed.while_doing(doing)?;
        progress.finish_and_clear();
        output::print(&match self.component.output {
            OutputForm::Json => pretty(&json!({
                "calls": speed.calls,
                "instantiation": quantiles_json(speed.instantiation),
                "overhead": quantiles_json(speed.overhead),
                "call": quantiles_json(speed.call),
            })),
            OutputForm::Table => speed_table(doing, speed),
        })?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Refuses a document for a generator.
fn check_role(plugin: &PluginUnderTest, document: Option<&Value>) -> Result<(), StartupError> {
    if document.is_some() && plugin.is_generator() {
        return Err(StartupError::new(
            "the component is a generator; omit --document",
        ));
    }
    Ok(())
}

/// Parses a number of calls.
fn calls(text: &str) -> Result<u32, String> {
    let calls = text
        .parse()
        .ok()
        .filter(|calls| (1..=CALLS_MAX).contains(calls));
    calls.ok_or_else(|| format!("must be a whole number from 1 to {CALLS_MAX}"))
}

const CALLS_MAX: u32 = 1_000_000;

fn quantiles_json(quantiles: Quantiles) -> Value {
    json!({
        "p50_us": microseconds(quantiles.p50),
        "p99_us": microseconds(quantiles.p99),
    })
}

fn speed_table(doing: &str, speed: Speed) -> String {
    let line = |what: &str, quantiles: Quantiles| {
        let [p50, p99] = [quantiles.p50, quantiles.p99].map(microseconds);
        format!("{what:<50} {p50:>10.1} {p99:>10.1}\n")
    };
    format!(
        "{:<50} {:>10} {:>10}\n{}{}{}",
        format!("microseconds, of {} calls", speed.calls),
        "p50",
        "p99",
        line("creating an instance", speed.instantiation),
        line("overhead of a call in a new instance", speed.overhead),
        line(&format!("{doing} in a new instance"), speed.call),
    )
}

fn microseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1_000_000.0
}

/// Tests a plugin.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  # Test a plugin, with the vectors in wireguard.vectors.json if it exists
  keywright plugin test wireguard.wasm
  # Print JSON, and limit the duration of each call
  keywright plugin test wireguard.wasm --limits '{\"deadline_ms\": 2000}' --output json
  # Also predict the effect of an upgrade on stored credentials
  keywright plugin test wireguard.wasm --against wireguard-1.0.0.wasm")]
pub(crate) struct Test {
    #[command(flatten)]
    component: ComponentArguments,
    /// Test vectors: a JSON array of calls with their expected results. Default: the file next to the component with
    /// the extension `.vectors.json`, if it exists.
    #[arg(long, value_name = "FILE")]
    vectors: Option<PathBuf>,
    /// Older release to compare with: a file or a reference to a registry. Predicts what a server does with credentials
    /// of the older release after an upgrade. If something breaks, the exit status is 3.
    #[arg(long, value_name = "OLD_FILE")]
    against: Option<PathBuf>,
}

/// The results of `plugin test`.
#[derive(Serialize)]
struct TestReport {
    #[serde(flatten)]
    conformance: ConformanceReport,
    #[serde(skip_serializing_if = "Option::is_none")]
    upgrade: Option<UpgradeReport>,
}

impl Test {
    pub(super) fn execute(self, progress: &ProgressBar) -> Result<ExitCode, StartupError> {
        let old = self.against.as_deref();
        if let Some(old) = old {
            self.component.check_login(old)?;
        }
        let plugin = self.component.open_with_notes(progress)?;
        let vectors = self.vectors()?;
        let old = old.map(|file| self.component.open_release(file, progress));
        let old = old.transpose()?;
        let failed = |failure| StartupError::while_doing("testing the component", failure);
        let conformance = plugin.test(&vectors, now_seconds()).map_err(failed)?;
        let upgrade = old.map(|old| {
            on_threads(async {
                let compared = plugin.compare_with(&old, &vectors, now()).await;
                compared.while_doing("comparing the releases")
            })
        });
        let report = TestReport {
            conformance,
            upgrade: upgrade.transpose()?,
        };
        progress.finish_and_clear();
        output::print(&match self.component.output {
            OutputForm::Json => pretty(&to_json(&report)?),
            OutputForm::Table => {
                let upgrade = report.upgrade.as_ref().map(upgrade_table);
                report_table(&report.conformance) + &upgrade.unwrap_or_default()
            }
        })?;
        let breaks = |upgrade: &UpgradeReport| upgrade.verdict == Effect::Breaks;
        let has_findings =
            !report.conformance.is_passed() || report.upgrade.as_ref().is_some_and(breaks);
        Ok(output::status(has_findings))
    }

    fn vectors(&self) -> Result<Vec<Vector>, StartupError> {
        let read = |path: &Path| read_vectors(path).on_file("reading the test vectors", path);
        let default_path = self.component.file.with_extension(VECTORS_EXTENSION);
        let (path, text) = match &self.vectors {
            Some(path) => (path, read(path)?),
            None => match fs::metadata(&default_path) {
                Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
                _ => (&default_path, read(&default_path)?),
            },
        };
        Vector::parse_all(&text).on_file("reading the test vectors", path)
    }
}

fn read_vectors(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    let file = File::open(path)?;
    file.take(VECTORS_BYTES_MAX + 1).read_to_string(&mut text)?;
    if text.len() as u64 > VECTORS_BYTES_MAX {
        let error = format!("the file is larger than {VECTORS_BYTES_MAX} bytes");
        return Err(io::Error::other(error));
    }
    Ok(text)
}

fn report_table(report: &ConformanceReport) -> String {
    let mut text = String::new();
    // Writing to a string does not fail.
    for check in &report.checks {
        let _ = match &check.fault {
            None => writeln!(text, "ok      {}", check.claim),
            Some(fault) => writeln!(text, "FAILED  {}: {}", check.claim, escaped(fault)),
        };
        if let Some(mismatch) = &check.mismatch {
            for line in difference(mismatch).lines() {
                let _ = writeln!(text, "        {}", escaped(line));
            }
        }
    }
    if let Some(entropy) = &report.entropy {
        let _ = writeln!(
            text,
            "\ncompared {} values and flipped {} random bits; generating a value uses at least {} random bits",
            entropy.values, entropy.flipped_bits, entropy.drawn_bits
        );
    }
    let _ = writeln!(
        text,
        "\n{:<18} {:>12} {:>12} {:>7}",
        "LIMIT", "USED", "OF", ""
    );
    for limit in &report.limits {
        let percent = limit.used.saturating_mul(100).div_ceil(limit.max.max(1));
        let _ = writeln!(
            text,
            "{:<18} {:>12} {:>12} {percent:>6}%",
            limit.limit, limit.used, limit.max
        );
    }
    text
}

/// Returns the difference between the expected and the returned result, as a unified diff.
fn difference(mismatch: &Mismatch) -> String {
    let [expected, returned] = [&mismatch.expected, &mismatch.returned].map(|result| {
        let mut sorted = result.clone();
        sorted.sort_all_objects();
        pretty(&sorted)
    });
    let difference = TextDiff::from_lines(&expected, &returned);
    let mut unified = difference.unified_diff();
    unified.header("expected", "returned").to_string()
}

/// Tests the components of a release, whose digests it embeds.
#[derive(Debug, Args)]
pub(crate) struct Tested {
    /// Components of generators and resolvers.
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
}

impl Tested {
    pub(super) fn execute(self) -> Result<ExitCode, StartupError> {
        let host = uncached_host();
        for file in self.files {
            let plugin = PluginUnderTest::open(file.clone(), Map::new(), Limits::default(), &host);
            let plugin = plugin.on_file("loading", &file)?;
            plugin.test_randomness().on_file("testing", &file)?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// The extension of the file of test vectors next to a component.
const VECTORS_EXTENSION: &str = "vectors.json";

/// The maximum size of a file of test vectors. The file can come with a component of a stranger, and be a link.
const VECTORS_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// The maximum number of requests shown for one finding.
const REQUESTS_SHOWN_MAX: usize = 3;

/// Returns the differences, the predictions that differ from the old release, and the verdict.
fn upgrade_table(report: &UpgradeReport) -> String {
    let mut text = format!(
        "\nUPGRADE FROM {} TO {}\n",
        report.old_version, report.new_version
    );
    // Writing to a string does not fail.
    for difference in &report.description {
        let effect = shown(difference.effect);
        let line = escaped(&format!("{}: {}", difference.part, difference.change));
        let _ = writeln!(text, "{effect:<7} {line}");
    }
    for Finding {
        prediction,
        requests,
    } in findings(report)
    {
        let effect = shown(prediction.effect);
        let reason = prediction.reason.as_deref().unwrap_or_default();
        let fails = match prediction.outcome {
            Outcome::Failed => "fails: ",
            Outcome::Same | Outcome::Changed => "",
        };
        let line = escaped(&format!("{}: {fails}{reason}", prediction.operation));
        let _ = writeln!(text, "{effect:<7} {line}");
        for request in requests.iter().take(REQUESTS_SHOWN_MAX) {
            let _ = writeln!(text, "          {}", escaped(request));
        }
        if requests.len() > REQUESTS_SHOWN_MAX {
            let _ = writeln!(
                text,
                "          and {} more",
                requests.len() - REQUESTS_SHOWN_MAX
            );
        }
    }
    let _ = writeln!(text, "\nverdict: {}", verdict(report));
    text
}

/// A prediction, and the parameters of all requests with the same prediction.
struct Finding<'r> {
    prediction: &'r Prediction,
    requests: Vec<String>,
}

/// Groups the predictions that differ from the old release, worst first.
fn findings(report: &UpgradeReport) -> Vec<Finding<'_>> {
    let mut findings: Vec<Finding<'_>> = Vec::new();
    for request in &report.requests {
        let parameters = Value::Object(request.parameters.clone()).to_string();
        let differing = request.predictions.iter();
        for prediction in differing.filter(|found| found.effect != Effect::Compatible) {
            let known = findings.iter_mut().find(|finding| {
                finding.prediction.operation == prediction.operation
                    && finding.prediction.reason == prediction.reason
            });
            match known {
                Some(finding) => finding.requests.push(parameters.clone()),
                None => findings.push(Finding {
                    prediction,
                    requests: vec![parameters.clone()],
                }),
            }
        }
    }
    findings.sort_by_key(|finding| {
        let Prediction {
            effect, operation, ..
        } = finding.prediction;
        (Reverse(*effect), *operation)
    });
    findings
}

/// Returns the verdict, the parts of the description and the operations with that effect, and the number of requests.
fn verdict(report: &UpgradeReport) -> String {
    let parts = report.description.iter();
    let parts = parts.filter(|difference| difference.effect == report.verdict);
    let mut affected: Vec<String> = parts.map(|difference| escaped(&difference.part)).collect();
    let predictions = report
        .requests
        .iter()
        .flat_map(|request| &request.predictions);
    let predictions = predictions.filter(|prediction| prediction.effect == report.verdict);
    let operations: BTreeSet<Operation> =
        predictions.map(|prediction| prediction.operation).collect();
    affected.extend(operations.iter().map(Operation::to_string));
    let compared = counted(report.requests.len() as u64, "request");
    match report.verdict {
        Effect::Compatible => format!("compatible ({compared} compared)"),
        effect => format!("{effect} {} ({compared} compared)", affected.join(", ")),
    }
}

/// Returns the effect at the beginning of a line.
fn shown(effect: Effect) -> String {
    match effect {
        Effect::Compatible => "ok".to_owned(),
        effect => effect.to_string(),
    }
}
