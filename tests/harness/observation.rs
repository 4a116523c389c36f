//! A server's log, management listener and metrics. Metrics are parsed in the text format of Prometheus, version 0.0.4.

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

impl Scrape {
    /// Parses metrics. Panics if two samples have the same name and labels.
    #[track_caller]
    pub fn parse(text: &str) -> Self {
        let (mut families, mut helps, mut samples) = (BTreeMap::new(), BTreeSet::new(), Vec::new());
        for line in text.lines() {
            if let Some(help) = line.strip_prefix("# HELP ") {
                helps.insert(help.split_once(' ').expect(line).0.to_owned());
            } else if let Some(family) = line.strip_prefix("# TYPE ") {
                let (name, kind) = family.split_once(' ').expect(line);
                assert!(["counter", "gauge", "histogram"].contains(&kind), "{line}");
                families.insert(name.to_owned(), kind.to_owned());
            } else if !line.is_empty() {
                let sample = Sample::parse(line);
                let family = family_of(&families, &sample.name);
                assert!(helps.contains(&family), "no HELP line: {line}");
                samples.push(sample);
            }
        }
        let series = samples.iter().map(|sample| (&sample.name, &sample.labels));
        assert_eq!(
            series.collect::<BTreeSet<_>>().len(),
            samples.len(),
            "{text}"
        );
        Self {
            text: text.to_owned(),
            families,
            samples,
        }
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
}

impl Sample {
    fn parse(line: &str) -> Self {
        let (series, value) = line.rsplit_once(' ').expect(line);
        let (name, labels) = match series.split_once('{') {
            Some((name, labels)) => (name, labels.strip_suffix('}').expect(line)),
            None => (series, ""),
        };
        let mut read = BTreeMap::new();
        let mut rest = labels;
        while !rest.is_empty() {
            let (label, after) = rest.split_once("=\"").expect(line);
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
