//! Read-only mode also suspends retention.

use keywright_harness::Server;
use serde_json::json;

use super::{after_a_run, options, poll, set_times, trust_the_clock, values};

#[tokio::test]
async fn read_only_mode_postpones_retention() {
    let server = Server::start_with(&options(&[("/a", "age_days_max = 1")])).await;
    trust_the_clock(&server).await;
    set_times(&server, "/a", 3).await;
    switch(&server, true).await;
    let days = "update credential_version set created_at = created_at - 2 * 86400000";
    server.run_sql(days).await;
    let waits = || server.log().matches("paused in read-only mode").count();
    let before = waits();
    // One check may precede the change of the ages, but not two.
    poll(async || waits() >= before + 2).await;
    assert_eq!(values(&server, "/a").await, ["2", "1", "0"]);
    switch(&server, false).await;
    after_a_run(&[&server]).await;
    assert_eq!(values(&server, "/a").await, ["2"]);
}

async fn switch(server: &Server, is_on: bool) {
    let body = json!({"read_only_mode": is_on});
    server.post("/management", body).await.expect(200);
}
