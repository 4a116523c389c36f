//! Regenerating all certificates of a CA, or all credentials of a plugin: `POST /api/v1/bulk-regenerate`.

mod concurrency;
mod dry_run;
mod generated_by;
mod keep_going;
mod signed_by;

use keywright_harness::{Options, QUICK_KEY, Response, Server, TestCertificate, signal, until};
use reqwest::Method;
use serde_json::json;
use tokio::task::JoinHandle;

use crate::external_certificates::Signing;

const BULK_REGENERATE: &str = "/api/v1/bulk-regenerate";

/// Returns options of a server whose timeouts allow slow key generation on a busy machine.
fn patient() -> Options {
    Options::default().environment(
        "KEYWRIGHT_GENERATORS__CERTIFICATE__LIMITS__DEADLINE_MS",
        "600000",
    )
}

/// Generates this many leaves at once: `CA/leaf/0`, `CA/leaf/1`, and so on.
async fn leaves(server: &Server, ca: &str, count: usize) -> Vec<String> {
    let names: Vec<String> = (0..count)
        .map(|number| format!("{ca}/leaf/{number}"))
        .collect();
    let requests: Vec<_> = names
        .iter()
        .map(|name| {
            let parameters = json!({"common_name": "leaf", "ca": ca, "key_type": QUICK_KEY});
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

fn names(response: &Response) -> Vec<String> {
    let json = response.clone().expect(200).json();
    let names = json["regenerated_credentials"].as_array().unwrap();
    let names = names.iter().map(|name| name.as_str().unwrap().to_owned());
    names.collect()
}

/// Sets this many leaves of `/root`, and returns their names. They have RSA keys, so that regenerating each takes about a
/// second.
async fn slow_leaves(server: &Server, root: &TestCertificate, count: usize) -> Vec<String> {
    let leaf = root.sign_leaf("leaf");
    let value = json!({"certificate": leaf.certificate, "ca_name": "/root"});
    let names: Vec<String> = (0..count).map(|number| format!("/slow/{number}")).collect();
    for name in &names {
        server.stored(name, "certificate", value.clone()).await;
    }
    names
}

/// Starts a bulk regeneration, and returns once it has generated this many values.
async fn begin(server: &Server, signed_by: &str, generated: usize) -> Bulk {
    let before = generated_count(server);
    let request = server.authorized(Method::POST, BULK_REGENERATE);
    let body = json!({"signed_by": signed_by}).to_string();
    let bulk = tokio::spawn(request.body(body).send());
    let has_begun = async || generated_count(server) >= before + generated || bulk.is_finished();
    until("generated values", has_begun).await;
    bulk
}

/// Returns the number of generated values in the server's log.
fn generated_count(server: &Server) -> usize {
    server.log().matches(r#""function":"generate""#).count()
}

type Bulk = JoinHandle<reqwest::Result<reqwest::Response>>;

/// A bulk regeneration whose server is stopped in the middle: some values are generated, nothing is written, and
/// another server of the same database can write in between.
struct PausedRegeneration<'a> {
    server: &'a Server,
    bulk: Bulk,
}

impl<'a> PausedRegeneration<'a> {
    /// Starts a bulk regeneration of this many certificates, and stops its server.
    async fn begin(server: &'a Server, signed_by: &str, count: usize) -> Self {
        loop {
            let before = generated_count(server);
            let bulk = begin(server, signed_by, 1).await;
            signal(server.process_id(), "STOP");
            let paused = Self { server, bulk };
            if generated_count(server) < before + count {
                return paused;
            }
            // The server was stopped too late, and may be writing already: try again.
            assert_eq!(paused.resume().await.status(), 200);
        }
    }

    /// Resumes the server, and returns the response.
    async fn resume(self) -> reqwest::Response {
        signal(self.server.process_id(), "CONT");
        self.bulk.await.unwrap().unwrap()
    }
}
