//! The policy that applies to a credential.

use keywright_harness::Server;

use super::{after_a_run, ids, options, set_times, values};
use crate::given;

#[tokio::test]
async fn the_most_specific_path_decides_and_casing_does_not_count() {
    let policies = [
        ("/*", "versions_max = 1"),
        ("/a/*", "versions_max = 2"),
        ("/a/b", "versions_max = 3"),
        ("/A/kept/*", "keep_all = true"),
        ("/a/kept/Not/*", "versions_max = 1"),
    ];
    let server = Server::start_with(&options(&policies)).await;
    let names = [
        ("/z", 1),
        ("/a", 1),
        ("/ab", 1),
        ("/A/x", 2),
        ("/a/b/c", 2),
        ("/a/B", 3),
        ("/a/kept", 2),
        ("/a/kept/x", 4),
        ("/a/kept/nothing", 4),
        ("/a/kept/not/x", 1),
    ];
    for (name, _) in names {
        set_times(&server, name, 4).await;
    }
    after_a_run(&[&server]).await;
    for (name, kept) in names {
        assert_eq!(ids(&server, name).await.len(), kept, "{name}");
    }
}

#[tokio::test]
async fn permissions_and_access_survive_retention() {
    let server = Server::start_with(&options(&[("/a", "versions_max = 1")])).await;
    let reader = server.as_client("reader").await;
    let permission = serde_json::json!({
        "path": "/a", "actor": "uaa-client:reader", "operations": ["read"],
    });
    let permission = server.post("/api/v2/permissions", permission).await;
    let permission = permission.expect(201).json();
    let [_, old, newest] = &set_times(&server, "/a", 3).await[..] else {
        panic!("three versions")
    };
    after_a_run(&[&server]).await;
    let path = format!(
        "/api/v2/permissions/{}",
        permission["uuid"].as_str().unwrap()
    );
    assert_eq!(server.get(&path).await.expect(200).json(), permission);
    let by_id = |id: &str| format!("/api/v1/data/{id}");
    let read = reader.get(&by_id(newest)).await.expect(200);
    assert_eq!(given::id(&read.json()), *newest);
    reader.get(&by_id(old)).await.expect(404);
    server.get(&by_id(old)).await.expect(404);
    assert_eq!(values(&server, "/a").await, ["2"]);
}
