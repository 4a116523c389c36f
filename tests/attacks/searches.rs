//! Searches that read every name, of an actor who may read almost nothing, and lists of everything that a CA signed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use keywright_harness::Server;
use tokio::task::JoinSet;

#[tokio::test]
async fn many_long_reads_of_one_actor_delay_others_only_briefly() {
    let server = Server::start().await;
    server.generate_authority("/large", None).await;
    server.generate_leaf("/leaf", "/large").await;
    server.copy_certificate("/leaf", 20_000).await;
    let attacker = server.as_client("attacker").await;
    server.grant("/large", attacker.actor(), &["read"]).await;
    let reader = server.as_client("reader").await;
    server.grant("/leaf", reader.actor(), &["read"]).await;
    // Verifying a token for the first time takes longer than a search.
    reader.get("/api/v1/data?name=/leaf").await.expect(200);

    for request in [
        "/api/v1/data?path=/",
        "/api/v1/data?name-like=copy",
        "/api/v1/certificates?name=/large",
    ] {
        let (mut storm, continues) = (JoinSet::new(), Arc::new(AtomicBool::new(true)));
        for _ in 0..STORM {
            let (attacker, continues) = (attacker.clone(), continues.clone());
            storm.spawn(async move {
                while continues.load(Ordering::Relaxed) {
                    attacker.get(request).await;
                }
            });
        }
        // Completes after the first requests of the storm, because they have the same actor.
        attacker.get(request).await;
        let mut completed = STORM;
        // Other programs can delay a search, so only the search with the shortest wait counts.
        for _ in 0..SEARCHES {
            let response = reader.get("/api/v1/data?path=/").await.expect(200);
            completed = completed.min(server.completed_meanwhile(&response, attacker.actor()));
        }
        // The server closes a connection on which too many new requests are aborted, so all of them complete.
        continues.store(false, Ordering::Relaxed);
        storm.join_all().await;
        // Without fairness, each search waits for all requests of the attacker in progress.
        assert!(completed <= STORM / 5, "{request}: {completed}");
    }
}

/// The number of requests that the attacker always has in progress: fewer than a connection may have.
const STORM: usize = 100;

/// The number of searches of the other actor.
const SEARCHES: usize = 3;
