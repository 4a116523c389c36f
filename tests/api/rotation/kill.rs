//! A server killed during a rotation.

use keywright_harness::Server;

use super::{FAST, Keys, OFF, SLOW, assert_values, counted, seed, until_inactive, usage};

#[tokio::test]
async fn a_killed_rotation_resumes_after_its_last_batch() {
    let keys = Keys::new();
    let server = Server::start_with(&keys.options(&["a"], FAST)).await;
    let values = seed(&server, VERSIONS).await;
    let slow = keys.options(&["b", "a"], SLOW);
    let server = Server::start_in(server.stop().await, &slow).await;
    let [rotated, ..] = until_inactive(&server, |inactive| inactive < LEFT).await;
    assert!((1..VERSIONS as u64).contains(&rotated), "{rotated}");
    let directory = server.kill();

    // Rotated and other versions can be read.
    let off = keys.options(&["b", "a"], OFF);
    let server = Server::start_in(directory, &off).await;
    assert_values(&server, &values).await;
    let [rotated, left, unknown] = usage(&server).await;
    assert!(
        rotated > 0 && left > 0 && unknown == 0,
        "{rotated} {left} {unknown}"
    );

    // The lease of the killed process expires.
    let fast = keys.options(&["b", "a"], FAST);
    let server = Server::start_in(server.stop().await, &fast).await;
    let all = until_inactive(&server, |inactive| inactive == 0).await;
    assert_eq!(all, [VERSIONS as u64, 0, 0]);
    let (rotated, failed) = counted(&server).await;
    #[expect(clippy::cast_precision_loss, reason = "there are few versions")]
    let left = left as f64;
    assert!((rotated - left).abs() < f64::EPSILON && failed.abs() < f64::EPSILON);
    assert_values(&server, &values).await;
}

const VERSIONS: usize = 120;
const LEFT: u64 = 118;
