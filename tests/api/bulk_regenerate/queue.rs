//! The queue of guest calls: a bulk regeneration waits in it like everybody else, and does not fill it.

use keywright_harness::{Options, Server};
use serde_json::json;

use super::{SLOW_KEY, authority, begin, leaf, names};
use crate::given;

#[tokio::test]
async fn more_certificates_than_may_wait_are_regenerated() {
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
async fn others_are_served_meanwhile() {
    let options = Options::default()
        .environment("KEYWRIGHT_PLUGINS__QUEUE_LENGTH", "2")
        .environment("KEYWRIGHT_PLUGINS__THREADS_PER_LANE", "2");
    let server = Server::start_with(&options).await;
    authority(&server, "/root", None).await;
    for number in 0..12 {
        let slow = json!({"ca": "/root", "key_type": SLOW_KEY});
        given::generate_certificate(&server, &format!("/leaf/{number}"), slow).await;
    }
    let bulk = begin(&server, "/root", 2).await;
    for number in 0..3 {
        let name = format!("/password/{number}");
        given::generate(&server, &name, "password", json!({})).await;
    }
    assert_eq!(bulk.await.unwrap().unwrap().status(), 200);
}
