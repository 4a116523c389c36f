//! Validation of the section.

use keywright_harness::Server;
use serde_json::json;

use super::{options, server};
use crate::given;

#[tokio::test]
async fn start_fails_with_a_minimum_over_3650_days() {
    for name in [
        "ca_minimum_duration_in_days",
        "leaf_minimum_duration_in_days",
    ] {
        let log = Server::refusal(&options(&format!("{name} = 3651")));
        assert!(log.contains(name) && log.contains("3650"), "{log}");
    }
    let lines = "ca_minimum_duration_in_days = 3650\nleaf_minimum_duration_in_days = 3650";
    let server = server(lines).await;
    let own = given::generate_certificate(&server, "/own", json!({"self_sign": true})).await;
    assert_eq!(own["duration_used"], 3650);
}

#[tokio::test]
async fn start_fails_with_an_unknown_setting() {
    for line in [
        "minimum_duration_in_days = 1",
        "ca_minimum_duration_in_days = -1",
        "leaf_minimum_duration_in_days = \"long\"",
        "concatenate_cas = 7",
    ] {
        let log = Server::refusal(&options(line));
        assert!(log.contains("configuration"), "{line}: {log}");
    }
}
