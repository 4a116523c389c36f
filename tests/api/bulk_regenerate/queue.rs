//! The queue of guest calls: a bulk regeneration waits in it like other requests, and does not fill it.

use keywright_harness::{Options, Server};
use serde_json::json;

use super::{authority, begin, endless_leaves, leaf, names, patient};
use crate::{given, made_elsewhere};

#[tokio::test]
async fn more_certificates_than_the_queue_holds_are_regenerated() {
    let options = Options::default()
        .environment("KEYWRIGHT_PLUGINS__QUEUE_LENGTH", "1")
        .environment("KEYWRIGHT_PLUGINS__THREADS_PER_LANE", "2");
    let server = Server::start_with(&options).await;
    authority(&server, "/root", None).await;
    for name in ["/a", "/b", "/c", "/d", "/e", "/f"] {
        leaf(&server, name, "/root").await;
    }
    let answer = server.bulk_regenerate("/root").await;
    assert_eq!(names(&answer).len(), 6);
}

#[tokio::test]
async fn other_requests_succeed_meanwhile() {
    let options = patient()
        .environment("KEYWRIGHT_PLUGINS__QUEUE_LENGTH", "2")
        .environment("KEYWRIGHT_PLUGINS__THREADS_PER_LANE", "2");
    let server = Server::start_with(&options).await;
    let root = made_elsewhere::authority("root");
    let value = json!({"certificate": root.certificate, "private_key": root.private_key});
    given::set(&server, "/root", "certificate", value).await;
    endless_leaves(&server, "/root", &root).await;
    let bulk = begin(&server, "/root", 2).await;
    for number in 0..3 {
        let name = format!("/password/{number}");
        given::generate(&server, &name, "password", json!({})).await;
    }
    assert!(!bulk.is_finished());
}
