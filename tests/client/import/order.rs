//! Certificates are set after their CAs, regardless of the order in the file.

use keywright_harness::{Server, Shell};
use serde_json::{Value, json};

use crate::given;

#[tokio::test]
async fn an_inverted_chain_is_imported() {
    let source = Server::start().await;
    given::certificate(&source, "/0", json!({"is_ca": true})).await;
    for depth in 1..DEPTH {
        let parameters = json!({"is_ca": true, "ca": format!("/{}", depth - 1)});
        given::certificate(&source, &format!("/{depth}"), parameters).await;
    }
    let mut entries = entries(&source);
    entries.sort_by_key(|entry| {
        let name = entry["name"].as_str().unwrap();
        std::cmp::Reverse(name[1..].parse::<usize>().unwrap())
    });
    assert_eq!(
        entries[0]["value"]["ca_name"],
        json!(format!("/{}", DEPTH - 2))
    );
    let target = Server::start().await;
    import(&target, &entries, &[]);
    assert_eq!(
        given::stored(&target, "").await,
        given::stored(&source, "").await
    );
}

#[tokio::test]
async fn the_ca_may_exist_only_on_the_server() {
    let server = Server::start().await;
    given::certificate(&server, "/ca", json!({"is_ca": true})).await;
    given::certificate(&server, "/leaf", json!({"ca": "/ca"})).await;
    let before = given::stored(&server, "").await;
    let mut entries = entries(&server);
    entries.retain(|entry| entry["name"] == json!("/leaf"));
    server.delete("/api/v1/data?name=/leaf").await.expect(204);
    import(&server, &entries, &[]);
    assert_eq!(given::stored(&server, "").await, before);

    server.delete("/api/v1/data?name=/ca").await.expect(204);
    let shell = Shell::of(&server);
    given::file(&shell, "file", &json!({"credentials": entries}).to_string());
    let run = shell.run(&["import", "file"]).expect(3);
    assert!(run.errors.contains("failed: /leaf (entry 1): "), "{run:?}");
}

#[tokio::test]
async fn the_last_of_several_entries_with_one_name_is_active() {
    let server = Server::start().await;
    let entries: Vec<Value> = (0..60)
        .map(|index| json!({"name": format!("/{}", index % 3), "type": "value", "value": index.to_string()}))
        .collect();
    import(&server, &entries, &["--parallel", "64"]);
    let stored = given::stored(&server, "").await;
    for (name, value) in [("/0", "57"), ("/1", "58"), ("/2", "59")] {
        assert_eq!(stored[name][1], json!(value));
        assert_eq!(server.versions(name).await.len(), 20);
    }
}

/// The entries of an export.
fn entries(server: &Server) -> Vec<Value> {
    let run = Shell::of(server).run(&["export", "--format", "json"]);
    let mut json: Value = serde_json::from_str(&run.expect(0).output).unwrap();
    let Value::Array(entries) = json["credentials"].take() else {
        panic!("no list: {json}");
    };
    entries
}

fn import(server: &Server, entries: &[Value], arguments: &[&str]) {
    let shell = Shell::of(server);
    given::file(&shell, "file", &json!({"credentials": entries}).to_string());
    let arguments = [&["import", "file"], arguments].concat();
    shell.run(&arguments).expect(0);
}

/// The number of certificates in the chain.
const DEPTH: usize = 12;
