//! Dry runs of an import.

use keywright_harness::{Server, Shell};
use serde_json::{Value, json};

use crate::given;

#[tokio::test]
async fn a_dry_run_checks_each_entry_and_sets_nothing() {
    let server = Server::start().await;
    server.set("/there", "value", json!("v")).await.expect(200);
    given::certificate(&server, "/ca", json!({"is_ca": true})).await;
    let before = given::stored(&server, "").await;
    let shell = Shell::of(&server);
    given::file(&shell, "file", FILE);
    let run = shell.run(&["import", "file", "--dry-run"]).expect(3);
    let summary: Value = serde_json::from_str(&run.output).unwrap();
    assert_eq!(summary["dry_run"], json!(true));
    assert_eq!(summary["set"], json!(4));
    let failures = [
        "/there (entry 2, line 3): a credential of type value with this name exists",
        "/user (entry 3, line 4): value has no password",
        "/leaf-3 (entry 7, line 8): its CA /nowhere is neither in the file nor on the server",
        "/leaf-4 (entry 8, line 9): /there is not a certificate",
        "/leaf-5 (entry 9, line 10): value has both ca and ca_name",
    ];
    for failure in failures {
        assert!(run.errors.contains(failure), "{failure}: {run:?}");
    }
    assert_eq!(summary["failed"], json!(failures.len()));
    assert_eq!(given::stored(&server, "").await, before);
    assert_eq!(server.versions("/there").await.len(), 1);
}

#[tokio::test]
async fn a_dry_run_without_findings_succeeds() {
    let server = Server::start().await;
    let shell = Shell::of(&server);
    given::file(
        &shell,
        "file",
        "credentials: [{name: a, type: value, value: v}]",
    );
    let run = shell.run(&["import", "file", "--dry-run", "--output", "table"]);
    let run = run.expect(0);
    assert!(run.output.contains("could be set"), "{run:?}");
    assert_eq!(given::stored(&server, "").await, json!({}));
}

const FILE: &str = "credentials:
- {name: /new, type: value, value: v}
- {name: /there, type: password, value: v}
- {name: /user, type: user, value: {username: u}}
- {name: /leaf-1, type: certificate, value: {ca_name: /ca, certificate: c}}
- {name: /leaf-2, type: certificate, value: {ca_name: listed, certificate: c}}
- {name: /listed, type: certificate, value: {certificate: c}}
- {name: /leaf-3, type: certificate, value: {ca_name: /nowhere, certificate: c}}
- {name: /leaf-4, type: certificate, value: {ca_name: /there, certificate: c}}
- {name: /leaf-5, type: certificate, value: {ca_name: /ca, ca: x, certificate: c}}
";
