//! A server refuses to start with keys that decrypt no stored value.

use keywright_harness::{Server, shared_storage};
use tempfile::TempDir;

use super::{active_key_id, with_keys};
use crate::given;

#[tokio::test]
async fn unusable_keys_are_refused_and_the_needed_ones_named() {
    let folder = TempDir::new().unwrap();
    let storage = shared_storage(folder.path());
    let mut needed = Vec::new();
    for (keys, name) in [(vec!["KEY_A"], "/a"), (vec!["KEY_B", "KEY_A"], "/b")] {
        let server = Server::start_with(&with_keys(&keys).storage(&storage)).await;
        given::set_value(&server, name, "1").await;
        needed.push(active_key_id(&server));
        server.stop().await;
    }
    for keys in [vec!["KEY_C"], vec!["PASSWORD", "KEY_C"]] {
        let said = Server::refusal(&with_keys(&keys).storage(&storage));
        assert!(
            said.contains("none of the configured encryption keys is the key of any of them"),
            "{said}"
        );
        for id in &needed {
            assert!(said.contains(id), "{id}: {said}");
        }
    }
    // The refused start changed nothing, and one of the two keys is enough.
    let server = Server::start_with(&with_keys(&["KEY_B"]).storage(&storage)).await;
    assert_eq!(given::newest(&server, "/b").await["value"], "1");
    server.stop().await;
    let server = Server::start_with(&with_keys(&["KEY_C", "KEY_A"]).storage(&storage)).await;
    assert_eq!(given::newest(&server, "/a").await["value"], "1");
}

#[tokio::test]
async fn an_empty_store_accepts_any_key() {
    let server = Server::start_with(&with_keys(&["KEY_A"])).await;
    let server = Server::start_in(server.stop().await, &with_keys(&["KEY_B"])).await;
    given::set_value(&server, "/a", "1").await;
}
