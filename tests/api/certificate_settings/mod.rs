//! What an operator sets for all certificates: the section `certificates` of the configuration.

#![expect(
    clippy::unwrap_used,
    reason = "a test ends when what it needs is not there"
)]

mod child_versions;
mod concatenation;
mod configuration;
mod durations;
mod key_usages;
mod rotation;

use keywright_harness::{Options, Server};
use serde_json::Value;

use crate::keys::with_certificate;

/// A server with these lines in the section `certificates`.
async fn server(lines: &str) -> Server {
    Server::start_with(&options(lines)).await
}

fn options(lines: &str) -> Options {
    Options::default().extra(&format!("\n[certificates]\n{lines}"))
}

/// How long a version's certificate is valid, in days.
fn days(version: &Value) -> i64 {
    let pem = version.pointer("/value/certificate").unwrap();
    with_certificate(pem.as_str().unwrap(), |certificate| {
        let validity = certificate.validity();
        (validity.not_after.timestamp() - validity.not_before.timestamp()) / 86_400
    })
}
