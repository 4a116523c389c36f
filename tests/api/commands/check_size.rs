//! `keywright check` of a store that is larger than its memory limit.

#![expect(
    clippy::unwrap_used,
    reason = "a test ends when what it needs is not there"
)]

use std::sync::Arc;

use keywright_harness::{Server, memory_of_command};

use crate::given;

#[tokio::test]
async fn memory_of_a_check_is_independent_of_the_number_of_versions() {
    let server = Arc::new(Server::start().await);
    write(&server, FEW).await;
    let few = (0..FEW_RUNS).map(|_| memory_of_command(server.directory(), &["check"]));
    let few = few.max().unwrap();
    write(&server, MANY - FEW).await;
    let many = memory_of_command(server.directory(), &["check"]);
    let versions = server.run_sql("select count(*) || '' from credential_version");
    assert_eq!(versions.await, MANY.to_string());
    assert!(
        many < few + GROWTH_KIBIBYTES_MAX,
        "{few} KiB for {FEW} versions, {many} KiB for {MANY}"
    );
}

/// Adds versions of a few credentials.
async fn write(server: &Arc<Server>, count: usize) {
    let value = "v".repeat(VALUE_BYTES);
    let mut writers = tokio::task::JoinSet::new();
    for writer in 0..WRITERS {
        let (server, value) = (Arc::clone(server), value.clone());
        writers.spawn(async move {
            let name = format!("/large/{writer}");
            for _ in 0..count / WRITERS {
                given::set_value(&server, &name, &value).await;
            }
        });
    }
    while let Some(done) = writers.join_next().await {
        done.unwrap();
    }
}

/// All values together are eight times as large.
const GROWTH_KIBIBYTES_MAX: u64 = 8 * 1_024;
const VALUE_BYTES: usize = 16_384;
const FEW: usize = 400;
/// On a busy machine a short run may end before its memory is sampled, but not every run.
const FEW_RUNS: usize = 5;
const MANY: usize = 4_000;
const WRITERS: usize = 20;
