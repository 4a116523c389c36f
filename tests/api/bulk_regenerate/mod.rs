//! Regenerating everything that an authority signed, or that a plugin made: `POST /api/v1/bulk-regenerate`.

#![expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a test ends when what it needs is not there"
)]

mod atomicity;
mod changes;
mod dry_run;
mod generated_by;
mod queue;
mod requests;
mod selection;
mod signers;

use keywright_harness::{Answer, Options, Server, signal};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::{given, made_elsewhere::MadeElsewhere};

const BULK_REGENERATE: &str = "/api/v1/bulk-regenerate";

/// A server with time for slow keys: none of them takes so long that it is given up, however busy the machine is.
fn patient() -> Options {
    Options::default().environment(
        "KEYWRIGHT_GENERATORS__CERTIFICATE__LIMITS__DEADLINE_MS",
        "600000",
    )
}

/// Generates an authority, signed by another one or by itself.
async fn authority(server: &Server, name: &str, ca: Option<&str>) -> Value {
    let parameters = json!({"is_ca": true, "ca": ca.unwrap_or_default()});
    given::generate_certificate(server, name, parameters).await
}

/// Generates a leaf.
async fn leaf(server: &Server, name: &str, ca: &str) -> Value {
    given::generate_certificate(server, name, json!({"ca": ca})).await
}

/// Generates so many leaves at once, with keys of this type: `/leaf/0`, `/leaf/1`, and so on.
async fn leaves(server: &Server, ca: &str, key_type: &str, count: usize) -> Vec<String> {
    let names: Vec<String> = (0..count)
        .map(|number| format!("{ca}/leaf/{number}"))
        .collect();
    let requests: Vec<_> = names
        .iter()
        .map(|name| {
            let parameters = json!({"common_name": "leaf", "ca": ca, "key_type": key_type});
            let body = json!({"name": name, "type": "certificate", "parameters": parameters});
            let request = server.authorized(Method::POST, "/api/v1/data");
            tokio::spawn(request.body(body.to_string()).send())
        })
        .collect();
    for request in requests {
        assert_eq!(request.await.unwrap().unwrap().status(), 200);
    }
    names
}

/// The names in an answer.
fn names(answer: &Answer) -> Vec<String> {
    let json = answer.clone().expect(200).json();
    let names = json["regenerated_credentials"].as_array().unwrap();
    let names = names.iter().map(|name| name.as_str().unwrap().to_owned());
    names.collect()
}

/// Sets so many leaves below an authority that was made elsewhere that their regeneration takes minutes, and returns their
/// names.
async fn endless_leaves(server: &Server, ca: &str, made: &MadeElsewhere) -> Vec<String> {
    let leaf = made.sign_leaf("leaf");
    let value = json!({"certificate": leaf.certificate, "ca_name": ca});
    let names: Vec<String> = (0..ENDLESS_LEAVES)
        .map(|number| format!("/endless/{number}"))
        .collect();
    for name in &names {
        given::set(server, name, "certificate", value.clone()).await;
    }
    names
}

/// Begins a bulk regeneration, and goes on when it has generated so many values.
async fn begin(server: &Server, signed_by: &str, generated: usize) -> Bulk {
    let before = generated_count(server);
    let request = server.authorized(Method::POST, BULK_REGENERATE);
    let body = json!({"signed_by": signed_by}).to_string();
    let bulk = tokio::spawn(request.body(body).send());
    while generated_count(server) < before + generated && !bulk.is_finished() {
        tokio::task::yield_now().await;
    }
    bulk
}

/// How many values the server has generated, as its log says.
fn generated_count(server: &Server) -> usize {
    server.log().matches(r#""function":"generate""#).count()
}

type Bulk = JoinHandle<reqwest::Result<reqwest::Response>>;

/// A bulk regeneration whose server stands still in the middle of it: something is generated, nothing is written, and what
/// another server of the same database does comes in between.
struct Held<'a> {
    server: &'a Server,
    bulk: Bulk,
}

impl<'a> Held<'a> {
    /// Begins a bulk regeneration of so many certificates, and holds it.
    async fn begin(server: &'a Server, signed_by: &str, count: usize) -> Self {
        loop {
            let before = generated_count(server);
            let bulk = begin(server, signed_by, 1).await;
            signal(server.process_id(), "STOP");
            let held = Self { server, bulk };
            if generated_count(server) < before + count {
                return held;
            }
            // Whoever looked at it had to wait too long, and it may be writing already: once more.
            assert_eq!(held.release().await.status(), 200);
        }
    }

    /// Has it go on, and returns what it is answered with.
    async fn release(self) -> reqwest::Response {
        signal(self.server.process_id(), "CONT");
        self.bulk.await.unwrap().unwrap()
    }
}

/// A type of key that takes long to make.
const SLOW_KEY: &str = "rsa";

/// Each takes a second or so.
const ENDLESS_LEAVES: usize = 200;
