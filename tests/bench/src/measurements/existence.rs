//! Measures whether the time of a refusal reveals the existence of a credential.

use std::time::Instant;

use hyper::Method;
use keywright_harness::Server;
use serde_json::{Value, json};

use crate::{
    server::{self, Connection, ServerAddress},
    statistics::{Outcome, Sample, micros},
    table::{Table, Threshold},
};

/// Measures refusals for existing and absent resources, alternately, for a caller without permission.
pub(crate) fn measure() -> Outcome<Table> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let options = server::options().extra(STRANGERS_OWN_PERMISSION);
        let server = Server::start_in(server::directory()?, &options).await;
        let request_pairs = request_pairs(&server).await?;
        let stranger = server.as_client("stranger").await;
        let address = ServerAddress::new(server::socket(&server)?, stranger.token());
        let mut connection = Connection::open(&address).await?;
        let mut table = Table::new(
            format!(
                "refusals for a caller without permission, {REQUESTS} each, alternating, medians in µs; P = 0.5: \
                 a single response reveals nothing"
            ),
            &["", "absent", "existing", "ratio", "goal", "P(existing is slower)", "goal"],
        );
        for request_pair in request_pairs {
            let [absent, existing] = request_pair.times(&mut connection).await?;
            let is_slower = existing.exceeds(&absent);
            let (absent, existing) = (absent.median(), existing.median());
            table.row([
                request_pair.what.to_owned(),
                format!("{absent:.0}"),
                format!("{existing:.0}"),
                format!("{:.3}", existing / absent),
                Threshold::Within(0.95, 1.05).verdict(existing / absent),
                format!("{is_slower:.3}"),
                Threshold::Within(0.45, 0.55).verdict(is_slower),
            ]);
        }
        Ok(table)
    })
}

/// The same request for an absent and for an existing resource.
struct RequestPair {
    what: &'static str,
    method: Method,
    targets: [Vec<String>; 2],
}

impl RequestPair {
    /// Returns the response times for the absent and for the existing resource. The order alternates, so that neither always
    /// comes first.
    async fn times(&self, connection: &mut Connection) -> Outcome<[Sample; 2]> {
        let [absent, existing] = &self.targets;
        let mut times = [Vec::new(), Vec::new()];
        let pairs = absent.iter().cycle().zip(existing.iter().cycle());
        for (round, (absent, existing)) in pairs.take(WARMING_REQUESTS + REQUESTS).enumerate() {
            let mut pair = [(0, absent), (1, existing)];
            if round % 2 == 1 {
                pair.reverse();
            }
            for (side, target) in pair {
                let begun = Instant::now();
                connection.refusal(&self.method, target).await?;
                let taken = micros(begun.elapsed());
                if let Some(times) = times.get_mut(side).filter(|_| round >= WARMING_REQUESTS) {
                    times.push(taken);
                }
            }
        }
        Ok(times.map(Sample::new))
    }
}

/// Returns the pairs of requests, each sent for several credentials. These have many long versions, because a leak would grow with
/// the amount of data to read.
async fn request_pairs(server: &Server) -> Outcome<Vec<RequestPair>> {
    let mut ids = Vec::new();
    let mut certificates = Vec::new();
    for name in names("exists") {
        for _ in 0..VERSIONS {
            let value = json!({"text": "v".repeat(VALUE_BYTES)});
            let body = json!({"name": name, "type": "json", "value": value});
            let version: Value = server.put("/api/v1/data", body).await.expect(200).json();
            ids.extend(version.get("id").and_then(Value::as_str).map(str::to_owned));
        }
        let parameters = json!({"common_name": "c", "self_sign": true, "key_type": "ecdsa-p256"});
        let certificate = format!("{name}-certificate");
        let generated = server.generate(&certificate, "certificate", parameters);
        generated.await.expect(200);
        for _ in 1..VERSIONS {
            let body = json!({"name": certificate});
            let regenerated = server.post("/api/v1/regenerate", body);
            regenerated.await.expect(200);
        }
        certificates.push(ids_of_certificate(server, &certificate).await?);
    }
    let data = |name: String| format!("/api/v1/data?name={name}");
    let certificate = |name: String| format!("/api/v1/certificates?name={name}-certificate");
    let by_id = |id: &String| format!("/api/v1/data/{id}");
    let permissions = |name: String| format!("/api/v1/permissions?credential_name={name}");
    let versions = |[id, _]: &[String; 2]| format!("/api/v1/certificates/{id}/versions");
    let version =
        |[id, version]: &[String; 2]| format!("/api/v1/certificates/{id}/versions/{version}");
    let no_certificates: Vec<_> = certificates
        .iter()
        .map(|ids| ids.each_ref().map(|id| no_id(id)))
        .collect();
    let request_pair = |what, method, target: fn(String) -> String| RequestPair {
        what,
        method,
        targets: ["absent", "exists"].map(|folder| names(folder).map(target).collect()),
    };
    Ok(vec![
        request_pair("GET by name", Method::GET, data),
        request_pair("DELETE", Method::DELETE, data),
        request_pair("certificates by name", Method::GET, certificate),
        RequestPair {
            what: "GET by id",
            method: Method::GET,
            targets: [
                ids.iter().map(|id| by_id(&no_id(id))).collect(),
                ids.iter().map(by_id).collect(),
            ],
        },
        request_pair("permissions by credential", Method::GET, permissions),
        RequestPair {
            what: "versions of a certificate",
            method: Method::GET,
            targets: [&no_certificates, &certificates]
                .map(|all| all.iter().map(versions).collect()),
        },
        RequestPair {
            what: "DELETE of a version",
            method: Method::DELETE,
            targets: [&no_certificates, &certificates].map(|all| all.iter().map(version).collect()),
        },
    ])
}

/// Returns the ids of a certificate and of its newest version.
async fn ids_of_certificate(server: &Server, name: &str) -> Outcome<[String; 2]> {
    let target = format!("/api/v1/certificates?name={name}");
    let found: Value = server.get(&target).await.expect(200).json();
    let id = |pointer| {
        let id = found.pointer(pointer).and_then(Value::as_str);
        id.map(str::to_owned)
            .ok_or_else(|| format!("{name} has no id"))
    };
    Ok([
        id("/certificates/0/id")?,
        id("/certificates/0/versions/0/id")?,
    ])
}

/// Returns an unknown but valid id, with every hexadecimal digit changed.
fn no_id(id: &str) -> String {
    let digits = id.chars().map(|digit| match digit.to_digit(16) {
        Some(value) => char::from_digit(15 - value, 16).unwrap_or(digit),
        None => digit,
    });
    digits.collect()
}

/// Names of equal length for folders with names of equal length.
fn names(folder: &str) -> impl Iterator<Item = String> {
    (0..NAMES).map(move |number| format!("/bench/{folder}/{number}"))
}

/// The caller has a permission, but not on the requested resources.
const STRANGERS_OWN_PERMISSION: &str = "
[[authorization.permissions]]
path = \"/strangers/*\"
actors = [\"uaa-client:stranger\"]
operations = [\"read\", \"write\", \"delete\"]
";

const NAMES: usize = 10;
const VERSIONS: usize = 20;
const VALUE_BYTES: usize = 32 * 1_024;
const REQUESTS: usize = if cfg!(debug_assertions) { 50 } else { 10_000 };
const WARMING_REQUESTS: usize = if cfg!(debug_assertions) { 10 } else { 500 };
