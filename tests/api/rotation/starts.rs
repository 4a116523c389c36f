//! Starts that reverse the direction of a rotation.

use keywright_harness::{Server, shared_storage};

use super::{FAST, Keys, OFF, seed, until_inactive};

#[tokio::test]
async fn a_failed_start_does_not_reverse_a_rotation() {
    let keys = Keys::new();
    let first = Server::start_with(&keys.options(&["a"], OFF)).await;
    seed(&first, 5).await;
    let storage = shared_storage(first.directory());
    let both = keys.options(&["b", "a"], FAST);
    let server = Server::start_in(first.stop().await, &both).await;
    let address = server.base_url().replace("https://", "");
    let port = address.rsplit(':').next().unwrap();

    // If these servers started, they would rotate towards the old key.
    let old = || keys.options(&["a", "b"], FAST).storage(&storage);
    for (failing, reason) in [
        (
            old().generator("absent", "component = \"absent.wasm\""),
            "loading the plugins",
        ),
        (
            old().environment("KEYWRIGHT_SERVER__LISTEN", &format!("\"{address}\"")),
            "Address already in use",
        ),
        (
            old().environment(
                "KEYWRIGHT_MANAGEMENT__LISTEN",
                &format!("\"127.0.0.1:{port}\""),
            ),
            "Address already in use",
        ),
    ] {
        let before = last_activated(&server).await;
        let said = Server::refusal(&failing);
        assert!(said.contains(reason), "{said}");
        assert_eq!(last_activated(&server).await, before);
        assert!(!said.contains("started rotating encryption keys"));
    }
    assert_eq!(until_inactive(&server, |left| left == 0).await, [5, 0, 0]);
    server.run_command(&["keys", "rotate"]).expect(0);
}

/// Returns the number of key activations and the latest ordinal.
async fn last_activated(server: &Server) -> String {
    let sql = "select count(*) || ' ' || max(ordinal) from encryption_key_activation";
    server.run_sql(sql).await
}
