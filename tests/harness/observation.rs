//! A server's log, management listener and metrics. Metrics are parsed in the text format of Prometheus, version 0.0.4.
//! Malformed metrics fail the test.

use std::{
    collections::{BTreeMap, BTreeSet},
    thread,
    time::Duration,
};

use chrono::{DateTime, TimeDelta, Utc};
use reqwest::Method;
use serde_json::Value;

use crate::{Response, Server, until_some};

impl Server {
    /// Returns the access log line of a request. It is written shortly after the response is sent.
    pub fn access_log_line(&self, response: &Response) -> String {
        let request_id = response.header("x-request-id").unwrap();
        for _ in 0..POLLS_MAX {
            let log = self.log();
            let mut lines = log.lines().filter(|line| line.contains("\"responded\""));
            if let Some(line) = lines.find(|line| line.contains(request_id)) {
                return line.to_owned();
            }
            thread::sleep(POLL);
        }
        panic!("the access log has no line about the request {request_id}");
    }

    /// Returns how many requests of an actor the server completed, without refusing them, between the arrival and the completion of this
    /// request, by the access log. Delays of the test's own process do not change the number.
    pub fn completed_meanwhile(&self, response: &Response, actor: &str) -> usize {
        let completed = Completed::from_line(&self.access_log_line(response)).unwrap();
        let arrived = completed.at - completed.duration;
        let log = self.log();
        let others = log.lines().filter_map(Completed::from_line);
        let meanwhile = others.filter(|other| (arrived..completed.at).contains(&other.at));
        meanwhile.filter(|other| other.actor == actor).count()
    }

    /// Returns the log so far, with the access log of all completed requests.
    pub async fn whole_log(&self) -> String {
        let response = self.send(self.request(Method::GET, "/info")).await;
        self.access_log_line(&response);
        self.log()
    }
}

/// A completed request in the access log.
struct Completed {
    actor: String,
    at: DateTime<Utc>,
    duration: TimeDelta,
}

impl Completed {
    /// Parses a line of the log. Returns `None` for lines that are not of the access log, name no actor, or are about refusals.
    fn from_line(line: &str) -> Option<Self> {
        let line: Value = serde_json::from_str(line).ok()?;
        if [429, 503].contains(&line["http.status"].as_u64()?) {
            return None;
        }
        let duration = Duration::from_secs_f64(line["duration_ms"].as_f64()? / 1_000.0);
        Some(Self {
            actor: line["actor"].as_str()?.to_owned(),
            at: line["timestamp"].as_str()?.parse().unwrap(),
            duration: TimeDelta::from_std(duration).unwrap(),
        })
    }
}

/// Polls for far longer than the delay of the access log.
const POLLS_MAX: usize = 30_000;

impl Server {
    /// Returns the management address, with its scheme, from the log.
    pub fn management_url(&self) -> String {
        let log = self.log();
        let address = log
            .lines()
            .filter_map(|line| serde_json::from_str::<Value>(line).ok())
            .find_map(|line| line["management.address"].as_str().map(str::to_owned));
        format!("http://{}", address.expect("a management address"))
    }

    /// Sends a request to the management address.
    pub async fn request_management(&self, method: Method, path: &str) -> Response {
        let url = format!("{}{path}", self.management_url());
        self.send(self.request_to(method, &url)).await
    }

    /// Scrapes the server's metrics.
    pub async fn scrape(&self) -> Scrape {
        let response = self.request_management(Method::GET, "/metrics").await;
        Scrape::parse(&response.expect(200).body)
    }

    /// Scrapes the server's metrics until the condition holds.
    pub async fn scrape_until(&self, is_met: impl Fn(&Scrape) -> bool) -> Scrape {
        until_some("such metrics", async || {
            Some(self.scrape().await).filter(&is_met)
        })
        .await
    }
}

const POLL: Duration = Duration::from_millis(2);

/// A server's metrics.
#[derive(Clone, Debug)]
pub struct Scrape {
    text: String,
    families: BTreeMap<String, String>,
    samples: Vec<Sample>,
}

/// One sample of the metrics.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// The name, with a suffix for parts of a histogram.
    pub name: String,
    /// The labels.
    pub labels: BTreeMap<String, String>,
    /// The value.
    pub value: f64,
}

/// The identity of a series: its name and labels.
type Series = (String, BTreeMap<String, String>);

impl Scrape {
    /// Parses and validates metrics.
    #[track_caller]
    pub fn parse(text: &str) -> Self {
        assert!(
            text.ends_with('\n'),
            "the last line does not end in a line feed"
        );
        let (mut families, mut helps) = (BTreeMap::new(), BTreeSet::new());
        let mut samples: Vec<Sample> = Vec::new();
        let mut series = BTreeSet::new();
        for line in text.lines() {
            if let Some(help) = line.strip_prefix("# HELP ") {
                let (name, words) = help.split_once(' ').expect(line);
                assert!(!words.is_empty(), "{line}");
                assert!(helps.insert(name.to_owned()), "duplicate: {line}");
            } else if let Some(family) = line.strip_prefix("# TYPE ") {
                let (name, kind) = family.split_once(' ').expect(line);
                assert!(["counter", "gauge", "histogram"].contains(&kind), "{line}");
                let before = families.insert(name.to_owned(), kind.to_owned());
                assert!(before.is_none(), "duplicate: {line}");
            } else if !line.is_empty() {
                let sample = Sample::parse(line);
                let family = family_of(&families, &sample.name);
                assert!(helps.contains(&family), "no HELP line: {line}");
                assert!(
                    series.insert((sample.name.clone(), sample.labels.clone())),
                    "duplicate: {line}"
                );
                samples.push(sample);
            }
        }
        let scrape = Self {
            text: text.to_owned(),
            families,
            samples,
        };
        scrape.assert_histograms_add_up();
        scrape
    }

    /// Returns the original text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the type of each metric, by its name.
    pub fn families(&self) -> &BTreeMap<String, String> {
        &self.families
    }

    /// Returns all samples.
    pub fn samples(&self) -> &[Sample] {
        &self.samples
    }

    /// Returns the sum of the samples with this name and at least these labels; `None` if there is no such sample.
    pub fn sum(&self, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
        let has_labels = |sample: &&Sample| {
            let has = |(label, value): &(&str, &str)| {
                sample.labels.get(*label).map(String::as_str) == Some(*value)
            };
            sample.name == name && labels.iter().all(has)
        };
        self.samples
            .iter()
            .filter(has_labels)
            .map(|sample| sample.value)
            .reduce(|one, other| one + other)
    }

    /// Asserts that the buckets of each histogram ascend and are cumulative, and that the last one equals the count.
    fn assert_histograms_add_up(&self) {
        let mut series: BTreeMap<Series, Vec<(f64, f64)>> = BTreeMap::new();
        for sample in &self.samples {
            if let Some(family) = sample.name.strip_suffix("_bucket") {
                let mut labels = sample.labels.clone();
                let bound = labels.remove("le").expect("a bucket's bound");
                let bound = bound.replace("+Inf", "inf").parse().unwrap();
                let buckets = series.entry((family.to_owned(), labels)).or_default();
                buckets.push((bound, sample.value));
            }
        }
        for ((family, labels), buckets) in series {
            assert!(
                buckets.is_sorted_by(|one, next| one.0 < next.0 && one.1 <= next.1),
                "{family}: {buckets:?}"
            );
            let labels: Vec<(&str, &str)> = labels
                .iter()
                .map(|(name, value)| (name.as_str(), value.as_str()))
                .collect();
            let last = buckets.last().unwrap();
            assert!(last.0.is_infinite(), "{family}");
            let actual = self.sum(&format!("{family}_count"), &labels);
            assert_eq!(actual, Some(last.1), "{family}");
            assert!(
                self.sum(&format!("{family}_sum"), &labels).is_some(),
                "{family}"
            );
        }
    }
}

impl Sample {
    fn parse(line: &str) -> Self {
        let (series, value) = line.rsplit_once(' ').expect(line);
        let (name, labels) = match series.split_once('{') {
            Some((name, labels)) => (name, labels.strip_suffix('}').expect(line)),
            None => (series, ""),
        };
        assert_is_name(name, line);
        let mut read = BTreeMap::new();
        let mut rest = labels;
        while !rest.is_empty() {
            let (label, after) = rest.split_once("=\"").expect(line);
            assert_is_name(label, line);
            let (value, after) = label_value(after, line);
            assert!(read.insert(label.to_owned(), value).is_none(), "{line}");
            rest = after.strip_prefix(',').unwrap_or(after);
        }
        Self {
            name: name.to_owned(),
            labels: read,
            value: value.parse().expect(line),
        }
    }
}

/// Returns the value of a label up to its closing quotation mark, and the rest of the line.
fn label_value<'a>(text: &'a str, line: &str) -> (String, &'a str) {
    let mut value = String::new();
    let mut characters = text.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return (value, &text[at + 1..]),
            '\\' => match characters.next().expect(line).1 {
                'n' => value.push('\n'),
                escaped @ ('"' | '\\') => value.push(escaped),
                other => panic!("unknown escape {other} in {line}"),
            },
            other => value.push(other),
        }
    }
    panic!("unterminated label: {line}");
}

/// Returns the metric of a sample, which must be declared before it.
fn family_of(families: &BTreeMap<String, String>, name: &str) -> String {
    let is = |name: &str, kind: &str| families.get(name).map(String::as_str) == Some(kind);
    if is(name, "gauge") {
        return name.to_owned();
    }
    if is(name, "counter") {
        assert!(name.ends_with("_total"), "{name}");
        return name.to_owned();
    }
    ["_bucket", "_sum", "_count"]
        .iter()
        .filter_map(|suffix| name.strip_suffix(suffix))
        .find(|family| is(family, "histogram"))
        .unwrap_or_else(|| panic!("{name} has no TYPE line before it"))
        .to_owned()
}

fn assert_is_name(name: &str, line: &str) {
    let mut characters = name.chars();
    let can_start = |character: char| character.is_ascii_alphabetic() || character == '_';
    assert!(characters.next().is_some_and(can_start), "{line}");
    assert!(
        characters.all(|character| can_start(character) || character.is_ascii_digit()),
        "{line}"
    );
}
