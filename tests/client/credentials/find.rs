//! `keywright find`.

use keywright_harness::{Server, Shell};
use serde_json::json;

use super::shown;

#[tokio::test]
async fn credentials_are_found_by_path_by_name_or_all() {
    let server = Server::start().await;
    for name in ["/a/one", "/a/two", "/b/ONE"] {
        server.set(name, "value", json!("v")).await.expect(200);
    }
    let shell = Shell::of(&server);
    for (arguments, expected) in [
        (&["find", "--names"][..], "/b/ONE\n/a/two\n/a/one\n"),
        (&["find", "--names", "--path", "/a"], "/a/two\n/a/one\n"),
        (
            &["find", "--names", "--name-like", "one"],
            "/b/ONE\n/a/one\n",
        ),
        (&["find", "--names", "--path", "/none"], ""),
    ] {
        assert_eq!(
            shell.run(arguments).expect(0).output,
            expected,
            "{arguments:?}"
        );
    }
    let api = server.get("/api/v1/data?path=/a").await.expect(200).json();
    assert_eq!(shown(shell.run(&["find", "--path", "/a"])), api);
    let (status, screen) = shell.on_terminal(&["find", "--path", "/b"]).end();
    assert_eq!(status, Some(0));
    assert!(
        screen.contains("NAME") && screen.contains("/b/ONE  20"),
        "{screen}"
    );
    shell
        .run(&["find", "--path", "/a", "--name-like", "one"])
        .expect(2);
}

#[tokio::test]
async fn certificates_are_found_by_their_own_or_their_cas_expiry() {
    let server = Server::start().await;
    let authority = json!({"common_name": "ca", "is_ca": true, "duration": 30});
    server
        .generate("/ca", "certificate", authority)
        .await
        .expect(200);
    let leaf = json!({"common_name": "leaf", "ca": "/ca", "duration": 365});
    server
        .generate("/leaf", "certificate", leaf)
        .await
        .expect(200);
    let shell = Shell::of(&server);
    let soon = ["find", "--expires-within-days", "60"];
    let found = shown(shell.run(&soon));
    assert_eq!(found["credentials"].as_array().unwrap().len(), 1);
    assert!(found["credentials"][0]["expiry_date"].is_string());
    let effective = [&soon[..], &["--effective"]].concat();
    let found = shown(shell.run(&effective));
    let found = found["credentials"].as_array().unwrap();
    assert_eq!(found.len(), 2);
    assert!(
        found
            .iter()
            .all(|found| found["expiring_link"]["name"] == "/ca")
    );
    let table = [&effective[..], &["-o", "table"]].concat();
    let table = shell.run(&table).expect(0).output;
    assert!(table.contains("BECAUSE OF"), "{table}");
    shell.run(&["find", "--effective"]).expect(2);
}
