//! Callers that occupy the threads for plugins.

use std::time::Duration;

use keywright_harness::{Answer, Caller, Options, Server, component};
use serde_json::json;
use tokio::task::JoinSet;

/// The maximum number of waiting calls per actor.
const SHARE: usize = 24;
/// The number of calls sent.
const STORM: usize = 64;

/// Starts calls, each of which occupies the only thread for half a second.
fn storm(caller: &Caller, from: &str) -> JoinSet<Answer> {
    let mut storm = JoinSet::new();
    for number in 0..STORM {
        let (caller, name) = (caller.clone(), format!("{from}/{number}"));
        storm.spawn(async move {
            let body = json!({"name": name, "type": "hostile", "parameters": {"behave": "loop"}});
            caller.post("/api/v1/data", body).await
        });
    }
    storm
}

#[tokio::test]
async fn a_storm_of_one_actor_delays_others_only_briefly() {
    let section = format!(
        "component = \"{}\"\ngrants = [\"random\", \"signing\"]\nderived = true\n\
         limits = {{ deadline_ms = 500 }}\nsettings = {{ generate = \"as-configured\" }}",
        component("hostile").display(),
    );
    let options = Options::default()
        .generator("hostile", &section)
        .environment("KEYWRIGHT_PLUGINS__THREADS_PER_LANE", "1")
        .environment("KEYWRIGHT_PLUGINS__QUEUE_LENGTH", "32")
        .environment(
            "KEYWRIGHT_PLUGINS__QUEUE_LENGTH_PER_ACTOR_MAX",
            &SHARE.to_string(),
        )
        .environment("KEYWRIGHT_PLUGINS__FAULTS_MAX", "1000000");
    let server = Server::start_with(&options).await;
    let attacker = server.as_client("attacker").await;
    server
        .grant("/attacker/*", attacker.actor(), &["write", "read"])
        .await;

    let mut storm = storm(&attacker, "/attacker");
    let mut refused = 0;
    while refused < STORM - SHARE - 2 {
        let answer = storm.join_next().await.unwrap().unwrap();
        if answer.status == 500 {
            continue;
        }
        let answer = answer.expect(429);
        assert!(answer.header("retry-after").is_some());
        refused += 1;
    }
    for number in 0..3 {
        let before = storm.len();
        server
            .generate(&format!("/mine/{number}"), "password", json!({}))
            .await
            .expect(200);
        // Counts completed calls without waiting for others.
        let mut ended = 0;
        while storm.try_join_next().is_some() {
            ended += 1;
        }
        assert!(before > 10, "the storm is over");
        assert!(ended <= 5, "{ended} calls of another actor went first");
    }
    // Callers that release the queue.
    storm.abort_all();
    while storm.join_next().await.is_some() {}
    tokio::time::sleep(Duration::from_millis(10)).await;
    server
        .generate("/mine/after", "password", json!({}))
        .await
        .expect(200);
    server.get("/health").await.expect(200);
}
