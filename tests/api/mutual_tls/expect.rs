//! A server that trusts client CAs, and the results that its clients get.

#![expect(
    clippy::unwrap_used,
    reason = "a test ends when what it needs is not there"
)]

use std::fs;

use keywright_harness::{Answer, Options, Server};
use rustls::{AlertDescription, Error};
use serde_json::Value;
use tempfile::TempDir;

use super::{
    caller::{Caller, VERSIONS},
    issued::{Authority, Holder},
};

/// An Organization Unit that is an identity.
pub(super) const UNIT: &str = "app:0d8c5e9e-0a0f-4f9d-8b1f-2c1f0f1d3a55";

/// An Organization Unit that is another identity.
pub(super) const OTHER_UNIT: &str = "app:7b2f4c11-9a3e-4d60-a1c4-5e6f70819203";

/// The actor of a certificate with [`UNIT`].
pub(super) const ACTOR: &str = "mtls-app:0d8c5e9e-0a0f-4f9d-8b1f-2c1f0f1d3a55";

/// The file with the trusted client CAs, in the server's folder.
pub(super) const AUTHORITIES_FILE: &str = "client-authorities.pem";

/// The result that a client gets.
#[derive(Clone, Copy, Debug)]
pub(super) enum Meets {
    /// The client is authenticated as this actor.
    Actor(&'static str),
    /// The handshake fails, with this alert.
    Alert(AlertDescription),
    /// 401, with a message that contains these words.
    Unauthenticated(&'static str),
}

/// A server that trusts these client CAs.
pub(super) async fn server_knowing(authorities: &[&Authority]) -> Server {
    server_knowing_with(authorities, Options::default()).await
}

/// A server that trusts these client CAs, with other settings in addition.
pub(crate) async fn server_knowing_with(authorities: &[&Authority], options: Options) -> Server {
    let directory = TempDir::new().unwrap();
    trust(directory.path(), authorities);
    let setting = format!("client_authorities = \"{AUTHORITIES_FILE}\"");
    Server::start_in(directory, &options.tls_settings(&setting)).await
}

/// Writes the file with the trusted client CAs.
pub(super) fn trust(directory: &std::path::Path, authorities: &[&Authority]) {
    let bundle: String = authorities
        .iter()
        .map(|authority| authority.pem())
        .collect();
    fs::write(directory.join(AUTHORITIES_FILE), bundle).unwrap();
}

/// Asserts the result for a client with this certificate and no token, over each version of TLS.
#[track_caller]
pub(super) fn assert_meets(server: &Server, what: &str, holder: &Holder, expected: Meets) {
    for version in VERSIONS {
        let what = format!("{what}, {:?}", version.version);
        let met = Caller::new(Some(holder), version).get(server, "/version", None);
        match (met, expected) {
            (Ok(answer), Meets::Actor(actor)) => {
                assert_eq!(answer.status, 200, "{what}: {answer:?}");
                assert_eq!(logged_actor(server, &answer), actor, "{what}");
            }
            (Ok(answer), Meets::Unauthenticated(words)) => {
                assert_eq!(answer.status, 401, "{what}: {answer:?}");
                let error = answer.error();
                assert!(error.contains(words), "{what}: {error}");
            }
            (Err(error), Meets::Alert(alert)) => {
                assert_eq!(error, Error::AlertReceived(alert), "{what}");
            }
            (met, _) => unreachable!("{what}: {met:?}, not {expected:?}"),
        }
    }
}

/// The actor of a request in the access log.
pub(super) fn logged_actor(server: &Server, answer: &Answer) -> String {
    let line: Value = serde_json::from_str(&server.access_log_line(answer)).unwrap();
    line.pointer("/span/actor")
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned()
}
