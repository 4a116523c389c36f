//! The section `encryption.rotation`.

use keywright_harness::Server;

use super::{Keys, OFF, seed, usage};

#[test]
fn a_rotation_setting_out_of_range_is_refused() {
    let keys = Keys::new();
    for (line, reason) in [
        ("batch_versions = 0", "must be from 1 to 1000, not 0"),
        ("batch_versions = 1001", "must be from 1 to 1000, not 1001"),
        (
            "pause_milliseconds = 60001",
            "must be from 0 to 60000, not 60001",
        ),
        ("interval_seconds = 0", "must be from 1 to 86400, not 0"),
        (
            "interval_seconds = 86401",
            "must be from 1 to 86400, not 86401",
        ),
        ("batches = 1", "unknown field"),
    ] {
        let said = Server::refusal(&keys.options(&["a"], line));
        assert!(said.contains(reason), "{line}\n{said}");
    }
}

#[tokio::test]
async fn the_largest_and_smallest_values_are_accepted() {
    let keys = Keys::new();
    for lines in [
        "batch_versions = 1\npause_milliseconds = 0\ninterval_seconds = 1",
        "batch_versions = 1000\npause_milliseconds = 60000\ninterval_seconds = 86400",
    ] {
        Server::start_with(&keys.options(&["a"], lines)).await;
    }
}

#[tokio::test]
async fn nothing_is_rotated_when_disabled() {
    let keys = Keys::new();
    let server = Server::start_with(&keys.options(&["a"], OFF)).await;
    seed(&server, 3).await;
    let off = keys.options(&["b", "a"], OFF);
    let server = Server::start_in(server.stop().await, &off).await;
    server.run_command(&["keys", "status"]).expect(0);
    assert_eq!(usage(&server).await, [0, 3, 0]);
}
