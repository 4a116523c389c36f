//! The text of a comparison of two releases of a plugin.

use std::{cmp::Reverse, collections::BTreeSet, fmt::Write};

use keywright_runtime::{Effect, Operation, Outcome, Prediction, UpgradeReport};
use serde_json::Value;

use super::super::output::{counted, escaped};

/// The maximum number of requests shown for one finding.
const REQUESTS_SHOWN_MAX: usize = 3;

/// Returns the differences, the predictions that differ from the old release, and the verdict.
pub(super) fn upgrade_table(report: &UpgradeReport) -> String {
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

/// Returns the verdict, the parts of the description and the operations that have this effect, and the number of requests.
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
