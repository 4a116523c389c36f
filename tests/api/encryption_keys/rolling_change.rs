//! Changing the active key of two servers, one after the other, without one failed request.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use keywright_harness::{Server, shared_storage};
use tempfile::TempDir;
use tokio::task::JoinHandle;

use super::{active_key_id, usage, used, with_keys};
use crate::given;

#[tokio::test]
async fn a_rolling_key_change_of_two_servers_fails_no_request() {
    let folder = TempDir::new().unwrap();
    let storage = shared_storage(folder.path());
    let start = |keys: &[&str]| {
        let options = with_keys(keys).storage(&storage);
        async move { Server::start_with(&options).await }
    };
    let (old, both) = (["KEY_A"], ["KEY_A", "PASSWORD"]);
    let changed = ["PASSWORD", "KEY_A"];

    let (one, two) = tokio::join!(start(&old), start(&old));
    let old_key = active_key_id(&one);
    given::set_value(&one, "/old", "1").await;

    // Both get the new key, still inactive.
    let load = Load::on(two);
    one.stop().await;
    let one = start(&both).await;
    let two = load.end().await;
    let load = Load::on(one);
    two.stop().await;
    let two = start(&both).await;
    let one = load.end().await;

    // One activates it; the other learns of it while running, and values under it are readable everywhere.
    let load = Load::on(two);
    one.stop().await;
    let one = start(&changed).await;
    assert_ne!(active_key_id(&one), old_key);
    given::set_value(&one, "/new", "2").await;
    let two = load.end().await;
    assert_eq!(given::newest(&two, "/new").await["value"], "2");
    given::set_value(&two, "/still-old", "3").await;
    assert_eq!(given::newest(&one, "/still-old").await["value"], "3");

    // The other one follows.
    let load = Load::on(one);
    two.stop().await;
    let two = start(&changed).await;
    let one = load.end().await;
    assert_eq!(active_key_id(&two), active_key_id(&one));
    for server in [&one, &two] {
        for (name, value) in [("/old", "1"), ("/new", "2"), ("/still-old", "3")] {
            assert_eq!(given::newest(server, name).await["value"], value);
        }
        assert_eq!(usage(server).await["unknown_keys"], 0);
    }
}

#[tokio::test]
async fn a_key_activated_elsewhere_is_recognised_before_it_is_needed() {
    let folder = TempDir::new().unwrap();
    let storage = shared_storage(folder.path());
    let old = with_keys(&["KEY_A", "KEY_B", "KEY_C"]).storage(&storage);
    let old = Server::start_with(&old).await;
    let new = with_keys(&["KEY_B", "KEY_A"]).storage(&storage);
    let new = Server::start_with(&new).await;
    given::set_value(&new, "/new", "1").await;
    let recognised = format!("\"encryption.key\":\"{}\"", active_key_id(&new));
    while !old.log().contains(&recognised) {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    assert_eq!(usage(&old).await, used(0, 1, 0));
}

#[tokio::test]
async fn a_key_activated_elsewhere_never_counts_as_unknown() {
    let folder = TempDir::new().unwrap();
    let storage = shared_storage(folder.path());
    let old = with_keys(&["KEY_A", "KEY_B"]).storage(&storage);
    let old = Server::start_with(&old).await;
    let new = with_keys(&["KEY_B", "KEY_A"]).storage(&storage);
    let new = Server::start_with(&new).await;
    given::set_value(&new, "/new", "1").await;
    assert_eq!(usage(&old).await, used(0, 1, 0));
}

/// Sets and reads on a server until stopped; a failed request fails the test.
struct Load {
    is_ending: Arc<AtomicBool>,
    running: JoinHandle<Server>,
}

impl Load {
    fn on(server: Server) -> Self {
        let is_ending = Arc::new(AtomicBool::new(false));
        let ended = Arc::clone(&is_ending);
        let running = tokio::spawn(async move {
            while !ended.load(Ordering::Relaxed) {
                given::set_value(&server, "/load", "value").await;
                given::newest(&server, "/old").await;
                let newest = "/api/v1/data?name=/load&current=true";
                server.get(newest).await.expect(200);
            }
            server
        });
        Self { is_ending, running }
    }

    async fn end(self) -> Server {
        self.is_ending.store(true, Ordering::Relaxed);
        self.running.await.unwrap()
    }
}
