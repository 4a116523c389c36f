//! Simultaneous requests.

use keywright_harness::Server;
use serde_json::json;
use tokio::task::JoinSet;

use super::{BY_CREDENTIAL, PERMISSIONS, address, on_credential, operations, permission};

/// The number of simultaneous requests.
const REQUESTS: usize = 12;

#[tokio::test]
async fn of_many_simultaneous_equal_additions_one_succeeds() {
    let server = Server::start().await;
    let caller = server.as_client("developer").await;
    for (path, body) in [
        (PERMISSIONS, permission("/a", "someone", &["read"])),
        (BY_CREDENTIAL, on_credential("/b", "someone", &["read"])),
    ] {
        let mut requests = JoinSet::new();
        for _ in 0..REQUESTS {
            let (caller, body) = (caller.clone(), body.clone());
            requests.spawn(async move { caller.post(path, body).await.status });
        }
        let mut statuses = requests.join_all().await;
        statuses.sort_unstable();
        assert_eq!(statuses[0], 201);
        assert!(
            statuses[1..].iter().all(|status| *status == 409),
            "{statuses:?}"
        );
    }
}

#[tokio::test]
async fn of_many_simultaneous_equal_deletions_one_succeeds() {
    let server = Server::start().await;
    let caller = server.as_client("developer").await;
    let id = server.grant("/a", "someone", &["read"]).await;
    let mut requests = JoinSet::new();
    for _ in 0..REQUESTS {
        let (caller, address) = (caller.clone(), address(&id));
        requests.spawn(async move { caller.delete(&address).await.status });
    }
    let mut statuses = requests.join_all().await;
    statuses.sort_unstable();
    assert_eq!(statuses[0], 200);
    assert!(
        statuses[1..].iter().all(|status| *status == 404),
        "{statuses:?}"
    );
}

#[tokio::test]
async fn a_concurrent_change_does_not_restore_a_deleted_permission() {
    let server = Server::start().await;
    let caller = server.as_client("developer").await;
    for _ in 0..5 {
        let id = server.grant("/a", "someone", &["read"]).await;
        let mut requests = JoinSet::new();
        for number in 0..REQUESTS {
            let (caller, address) = (caller.clone(), address(&id));
            requests.spawn(async move {
                if number == REQUESTS / 2 {
                    return caller.delete(&address).await.status;
                }
                let body = permission("/a", "someone", &["write"]);
                caller.put(&address, body).await.status
            });
        }
        let statuses = requests.join_all().await;
        assert!(
            statuses.iter().all(|status| [200, 404].contains(status)),
            "{statuses:?}"
        );
        server.get(&address(&id)).await.expect(404);
    }
}

#[tokio::test]
async fn simultaneously_added_operations_are_all_kept() {
    let server = Server::start().await;
    let caller = server.as_client("developer").await;
    let mut requests = JoinSet::new();
    for operation in super::ALL {
        let caller = caller.clone();
        let body = on_credential("/a", "someone", &[operation]);
        requests.spawn(async move { caller.post(BY_CREDENTIAL, body).await.status });
    }
    assert_eq!(requests.join_all().await, [201; 5]);
    let kept = operations(&server, "/a", "someone").await;
    assert_eq!(kept, json!(super::ALL));
}
