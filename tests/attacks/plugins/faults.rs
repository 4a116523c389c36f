//! Callers whose input makes a plugin fail.

use keywright_harness::{Caller, Options, Server, component};
use serde_json::json;

/// The maximum number of consecutive faults.
const FAULTS_MAX: usize = 5;

/// A server whose resolver and generator `hostile` do what each request says.
async fn server() -> Server {
    let hostile = component("hostile");
    let section = |function: &str| {
        format!(
            "component = \"{}\"\ngrants = [\"random\", \"signing\"]\nderived = true\n\
             limits = {{ deadline_ms = 1000 }}\nsettings = {{ {function} = \"as-configured\" }}",
            hostile.display(),
        )
    };
    let resolver = format!("[resolver]\n{}", section("find-references"));
    let options = Options::default()
        .without_resolver()
        .extra(&resolver.replace("derived = true\n", ""))
        .generator("hostile", &section("generate"))
        .environment("KEYWRIGHT_PLUGINS__FAULTS_MAX", &FAULTS_MAX.to_string())
        .environment("KEYWRIGHT_PLUGINS__REST_SECONDS", "3600");
    Server::start_with(&options).await
}

/// Sends a document that makes the resolver fail in this way, and requires this status.
async fn interpolate(caller: &Caller, behaviour: &str, status: u16) {
    let document = json!({"behave": behaviour});
    let answer = caller.post("/api/v1/interpolate", document).await;
    let answer = answer.expect(status);
    if status == 503 {
        let seconds: u32 = answer.header("retry-after").unwrap().parse().unwrap();
        assert!((3_000..=3_600).contains(&seconds), "{seconds}");
    }
}

#[tokio::test]
async fn trapping_documents_open_only_their_senders_circuit() {
    let server = server().await;
    let attacker = server.as_client("attacker").await;
    let other = server.as_client("other").await;
    let behaviours = ["trap", "panic", "recurse", "allocate", "loop"];
    for behaviour in behaviours {
        interpolate(&attacker, behaviour, 500).await;
    }
    for _ in 0..20 {
        interpolate(&attacker, "trap", 503).await;
        interpolate(&other, "", 200).await;
    }
    // Several actors together open the circuit for other actors without successful calls, but not for actors with
    // successful ones.
    for name in ["a", "b", "c", "d", "e"] {
        let stranger = server.as_client(name).await;
        for number in 0..FAULTS_MAX {
            let document = json!({"behave": "trap", "number": number});
            let answer = stranger.post("/api/v1/interpolate", document).await;
            assert!([500, 503].contains(&answer.status), "{}", answer.body);
        }
    }
    let newcomer = server.as_client("newcomer").await;
    interpolate(&newcomer, "", 503).await;
    interpolate(&other, "", 200).await;
    interpolate(&newcomer, "", 200).await;
    server.get("/api/v1/data?path=/").await.expect(200);
}

#[tokio::test]
async fn trapping_parameters_open_only_their_senders_circuit() {
    let server = server().await;
    let attacker = server.as_client("attacker").await;
    let other = server.as_client("other").await;
    for caller in [&attacker, &other] {
        let path = format!("/{}/*", caller.actor().trim_start_matches("uaa-client:"));
        server
            .grant(&path, caller.actor(), &["write", "read"])
            .await;
    }
    let generate = async |caller: &Caller, name: &str, behaviour: &str, status: u16| {
        let parameters = json!({"behave": behaviour});
        let body =
            json!({"name": name, "type": "hostile", "parameters": parameters, "mode": "overwrite"});
        caller.post("/api/v1/data", body).await.expect(status);
    };
    for behaviour in ["trap", "panic", "recurse", "allocate", "loop"] {
        generate(&attacker, "/attacker/a", behaviour, 500).await;
    }
    let body = json!({"name": "/other/a", "type": "hostile", "mode": "overwrite"});
    for _ in 0..20 {
        generate(&attacker, "/attacker/a", "trap", 503).await;
        other.post("/api/v1/data", body.clone()).await.expect(200);
    }
}

#[tokio::test]
async fn too_deep_or_overlapping_references_fail_their_request() {
    let server = server().await;
    let caller = server.as_client("caller").await;
    server.set("/x", "json", json!({})).await.expect(200);
    server.grant("/x", caller.actor(), &["read"]).await;
    for (behaviour, status) in [
        ("deep-pointer", 400),
        ("deep-pointers", 500),
        ("overlapping-pointers", 500),
        ("deep-pointer", 400),
    ] {
        interpolate(&caller, behaviour, status).await;
        server.get("/health").await.expect(200);
    }
    // Invalid results of a plugin do not count as faults.
    for _ in 0..FAULTS_MAX {
        interpolate(&caller, "overlapping-pointers", 500).await;
    }
    interpolate(&caller, "", 200).await;
}
