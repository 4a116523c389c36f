//! The section `certificates` of the configuration, which applies to all certificates.

#![expect(
    clippy::unwrap_used,
    reason = "a test ends when what it needs is not there"
)]

mod child_versions;
mod concatenation;
mod configuration;
mod durations;
mod key_usages;

use keywright_harness::{Options, Server};
use serde_json::Value;

use crate::keys::certificate_days;

/// A server with these lines in the section `certificates`.
async fn server(lines: &str) -> Server {
    Server::start_with(&options(lines)).await
}

fn options(lines: &str) -> Options {
    Options::default().extra(&format!("\n[certificates]\n{lines}"))
}

/// How long a version's certificate is valid, in days.
fn days(version: &Value) -> i64 {
    certificate_days(&certificate(version))
}

/// The field `ca` of a version's value.
fn ca(version: &Value) -> String {
    member(version, "ca")
}

/// The field `certificate` of a version's value.
fn certificate(version: &Value) -> String {
    member(version, "certificate")
}

fn member(version: &Value, name: &str) -> String {
    let member = version.pointer(&format!("/value/{name}")).unwrap();
    member.as_str().unwrap().to_owned()
}

/// The contents of `ca` if the first certificate signed and the second is trusted.
fn both(signing: &str, trusted: &str) -> String {
    format!("{}\n{}\n", signing.trim(), trusted.trim())
}

const CONCATENATED: &str = "concatenate_cas = true";
