//! Readers and writers during retention.

use std::sync::Arc;

use keywright_harness::Server;
use serde_json::json;

use super::{after_a_run, ids, options};
use crate::{certificates::Certificate, given};

#[tokio::test]
async fn retention_does_not_disturb_readers_and_writers() {
    let server = Server::start_with(&options(&[("/*", "versions_max = 1")])).await;
    let server = Arc::new(server);
    let writers = (0..4).map(|writer| {
        let server = Arc::clone(&server);
        tokio::spawn(async move {
            let name = format!("/{writer}");
            let mut newest = String::new();
            for number in 0..WRITES {
                newest = given::id(&given::set_value(&server, &name, &number.to_string()).await);
                let read = given::newest(&server, &name).await;
                assert_eq!(given::id(&read), newest);
            }
            (name, newest)
        })
    });
    let writers: Vec<_> = writers.collect();
    let root = Certificate::generate_root(&server, "/root").await;
    for _ in 0..ROTATIONS {
        let old = given::id(&root.current().await[0]);
        let transitional = json!({"set_as_transitional": true});
        let new = root.regenerate(transitional).await.expect(200).json();
        root.move_transitional(json!(old)).await.expect(200);
        root.move_transitional(json!(null)).await.expect(200);
        assert_eq!(given::id(&root.current().await[0]), given::id(&new));
    }
    for writer in writers {
        let (name, newest) = writer.await.unwrap();
        after_a_run(&[&server]).await;
        assert_eq!(ids(&server, &name).await, [newest]);
    }
    assert_eq!(ids(&server, "/root").await.len(), 1);
    for status in ["409", "503"] {
        let log = server.audit_trail();
        assert!(!log.contains(&format!("\"status\":{status}")), "{log}");
    }
}

const WRITES: usize = 150;
const ROTATIONS: usize = 30;
