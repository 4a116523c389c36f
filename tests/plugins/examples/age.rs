//! `examples/age-generator`.

use keywright_harness::{Program, Server, is_available};
use serde_json::json;

use super::made;

/// age's own program computes the same recipient for the identity.
pub(super) async fn is_an_identity_of_age(server: &Server) {
    let value = made(server, "age", &json!({})).await;
    if is_available("age-keygen") {
        let identity = value["identity"].as_str().unwrap();
        let recipient = Program::run("age-keygen", &["-y"], identity).expect_success();
        assert_eq!(value["recipient"], recipient.trim());
    }
}
