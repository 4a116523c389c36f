//! The effects of permissions, configured permissions, and simultaneous changes.

use keywright_harness::{Caller, Options, Server, Text};
use serde_json::json;
use tokio::task::JoinSet;

use super::{
    ALL, BY_CREDENTIAL, PERMISSIONS, address, client_with, on_credential, operations, permission,
    stored,
};

// Permissions exist independently of their credentials, and add up.

#[tokio::test]
async fn a_permission_exists_independently_of_its_credential() {
    let server = Server::reused().await;
    let reader = client_with(&server, "/a", &["read"]).await;
    assert_eq!(read(&reader, "/a").await, 404);
    for _ in 0..2 {
        server.set_value("/a", "x").await;
        assert_eq!(read(&reader, "/a").await, 200);
        server.delete("/api/v1/data?name=/a").await.expect(204);
        assert_eq!(read(&reader, "/a").await, 404);
        let actual = operations(&server, "/a", reader.actor()).await;
        assert_eq!(actual, json!(["read"]));
    }
}

#[tokio::test]
async fn permissions_on_all_enclosing_paths_add_up() {
    let server = Server::reused().await;
    server.set_value("/a/b", "x").await;
    let caller = server.as_client("someone").await;
    assert_eq!(read(&caller, "/a/b").await, 404);
    server.grant("/a/*", caller.actor(), &["read"]).await;
    let exact = server.grant("/a/b", caller.actor(), &["delete"]).await;
    // The nearest permission lacks read, but revokes nothing.
    assert_eq!(read(&caller, "/a/b").await, 200);
    server.revoke(&exact).await;
    assert_eq!(read(&caller, "/a/b").await, 200);
    caller.delete("/api/v1/data?name=/a/b").await.expect(404);
    server.grant("/*", caller.actor(), &["delete"]).await;
    caller.delete("/api/v1/data?name=/a/b").await.expect(204);
}

#[tokio::test]
async fn permission_changes_apply_from_the_next_request() {
    let server = Server::reused().await;
    server.set_value("/a", "x").await;
    let caller = server.as_client("someone").await;
    let developer = server.as_client("developer").await;
    for _ in 0..3 {
        let id = server.grant("/a", caller.actor(), &["read"]).await;
        assert_eq!(read(&caller, "/a").await, 200);
        let body = json!({"operations": ["delete"]});
        let address = super::address(&id);
        developer.patch(&address, body).await.expect(200);
        assert_eq!(read(&caller, "/a").await, 404);
        server.revoke(&id).await;
        assert_eq!(read(&caller, "/a").await, 404);
    }
}

async fn read(caller: &Caller, name: &str) -> u16 {
    let path = format!("/api/v1/data?name={name}");
    caller.get(&path).await.status
}

// Configured permissions: granted at every start, and never revoked.

fn configured(path: &str, actors: &[&str], given: &[&str]) -> Options {
    Options::default().extra(&format!(
        "[[authorization.permissions]]\npath = \"{path}\"\nactors = {actors:?}\noperations = {given:?}\n"
    ))
}

#[tokio::test]
async fn configured_permissions_are_granted_to_each_actor() {
    let actors = ["one", "uaa-client:two"];
    let options = configured("a/*", &actors, &["write", "read", "read"]);
    let server = Server::start_with(&options).await;
    for actor in actors {
        let given = operations(&server, "/a/*", actor).await;
        assert_eq!(given, json!(["read", "write"]));
    }
    let two = server.as_client("two").await;
    let body = json!({"name": "/a/b", "type": "value", "value": "x"});
    two.put("/api/v1/data", body).await.expect(200);
}

#[tokio::test]
async fn each_start_adds_missing_operations_and_removes_none() {
    let options = configured("/a", &["one"], &["read", "delete"]);
    let server = Server::start_with(&options).await;
    let id = stored(&server, "/a", "one").await.unwrap()["uuid"].clone();
    let one = address(id.as_str().unwrap());
    let body = permission("/a", "one", &["write"]);
    server.put(&one, body).await.expect(200);
    let server = Server::start_in(server.stop().await, &options).await;
    let expected = json!({
        "uuid": id, "path": "/a", "actor": "one", "operations": ["read", "write", "delete"],
    });
    assert_eq!(stored(&server, "/a", "one").await, Some(expected.clone()));
    let server = Server::start_in(server.stop().await, &Options::default()).await;
    assert_eq!(stored(&server, "/a", "one").await, Some(expected));
    server.delete(&one).await.expect(200);
    let server = Server::start_in(server.stop().await, &Options::default()).await;
    assert_eq!(stored(&server, "/a", "one").await, None);
    let server = Server::start_in(server.stop().await, &options).await;
    let given = operations(&server, "/a", "one").await;
    assert_eq!(given, json!(["read", "delete"]));
}

#[tokio::test]
async fn an_impossible_actor_is_logged_as_a_warning() {
    let server = Server::start_with(&configured("/a", &["one", "uaa-user:two"], &["read"])).await;
    let log = server.log();
    let warning = "granted a configured permission to an actor that matches no caller";
    let warnings: Vec<_> = log.lines().filter(|line| line.contains(warning)).collect();
    assert_eq!(warnings.len(), 1, "{log}");
    for part in ["one", "\"WARN\""] {
        warnings[0].assert_contains(part);
    }
}

// Simultaneous requests.

/// The number of simultaneous requests.
const REQUESTS: usize = 12;

#[tokio::test]
async fn one_of_many_identical_concurrent_additions_succeeds() {
    let server = Server::start().await;
    let caller = server.as_client("developer").await;
    for (path, body) in [
        (PERMISSIONS, permission("/a", "someone", &["read"])),
        (BY_CREDENTIAL, on_credential("/b", "someone", &["read"])),
    ] {
        let requests = (0..REQUESTS).map(|_| {
            let (caller, body) = (caller.clone(), body.clone());
            async move { caller.post(path, body).await.status }
        });
        assert_one_succeeds(requests, 201, 409).await;
    }
}

#[tokio::test]
async fn one_of_many_identical_concurrent_deletions_succeeds() {
    let server = Server::start().await;
    let caller = server.as_client("developer").await;
    let id = server.grant("/a", "someone", &["read"]).await;
    let requests = (0..REQUESTS).map(|_| {
        let (caller, address) = (caller.clone(), address(&id));
        async move { caller.delete(&address).await.status }
    });
    assert_one_succeeds(requests, 200, 404).await;
}

/// Asserts that one of several simultaneous requests has the first status, and the others the second.
async fn assert_one_succeeds(
    requests: impl Iterator<Item: Future<Output = u16> + Send + 'static>,
    success: u16,
    refusal: u16,
) {
    let mut statuses = requests.collect::<JoinSet<u16>>().join_all().await;
    statuses.sort_unstable();
    let refused = vec![refusal; REQUESTS - 1];
    assert_eq!(statuses, [vec![success], refused].concat());
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
    for operation in ALL {
        let caller = caller.clone();
        let body = on_credential("/a", "someone", &[operation]);
        requests.spawn(async move { caller.post(BY_CREDENTIAL, body).await.status });
    }
    assert_eq!(requests.join_all().await, [201; 5]);
    let actual = operations(&server, "/a", "someone").await;
    assert_eq!(actual, json!(ALL));
}
