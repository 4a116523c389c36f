//! Troubleshooting in the operator guide: each symptom in its tables is provoked.

mod client;
mod log;
mod request;
mod start;

use std::fs;

use keywright_harness::workspace;

use crate::documents::has_line_as_shown;

#[tokio::test(flavor = "multi_thread")]
async fn start_up_errors_match_the_guide() {
    for symptom in symptoms("## The server does not start") {
        symptom.must_be_in(&start::provoke(&symptom.text).await);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn error_responses_match_the_guide() {
    for symptom in symptoms("## Requests are refused") {
        let answer = request::provoke(&symptom.text).await;
        let status = answer.status.to_string();
        assert!(
            symptom.statuses.contains(&status),
            "{}: {answer:?}",
            symptom.text
        );
        symptom.must_be_in(&answer.body);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn log_warnings_match_the_guide() {
    for symptom in symptoms("## Warnings in the log") {
        symptom.must_be_in(&log::provoke(&symptom.text).await);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn command_line_errors_match_the_guide() {
    for symptom in symptoms("## Messages of the command line") {
        let ended = client::provoke(&symptom.text).await;
        let status = ended.status.unwrap().to_string();
        assert!(
            symptom.statuses.contains(&status),
            "{}: {ended:?}",
            symptom.text
        );
        symptom.must_be_in(&ended.errors);
    }
}

/// A row of a table.
struct Symptom {
    /// The statuses before the symptom, if the table has them.
    statuses: Vec<String>,
    /// The symptom, with `…` for omitted text.
    text: String,
}

impl Symptom {
    fn must_be_in(&self, seen: &str) {
        assert!(has_line_as_shown(&self.text, seen), "{}: {seen}", self.text);
    }
}

/// Returns the rows of the table below a heading.
fn symptoms(heading: &str) -> Vec<Symptom> {
    let guide =
        fs::read_to_string(workspace().join("host/docs/operating/troubleshooting.md")).unwrap();
    let lines = guide.lines().skip_while(|line| *line != heading).skip(1);
    let lines = lines.take_while(|line| !line.starts_with('#'));
    let symptoms: Vec<_> = lines.filter_map(symptom).collect();
    assert!(
        !symptoms.is_empty(),
        "there are no symptoms below {heading}"
    );
    symptoms
}

fn symptom(line: &str) -> Option<Symptom> {
    let cells = line.strip_prefix("| ")?.split(" | ");
    let mut statuses = Vec::new();
    for cell in cells {
        if let Some(text) = cell
            .strip_prefix('`')
            .and_then(|text| text.strip_suffix('`'))
        {
            let text = text.to_owned();
            return Some(Symptom { statuses, text });
        }
        statuses = cell.split(", ").map(str::to_owned).collect();
    }
    None
}

/// Fails for a symptom that no test provokes.
fn nothing_provokes(text: &str) -> ! {
    panic!("nothing provokes {text:?}: correct the guide, or provoke it here")
}
