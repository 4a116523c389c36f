//! Access tokens from a file or a variable.

use std::fs;

use keywright_harness::{Server, Shell};
use serde_json::json;

use super::session;
use crate::stub::{Reply, Stub, versions};

#[tokio::test]
async fn a_token_from_a_file_or_a_variable_replaces_a_login() {
    let server = Server::start().await;
    server.set("/a", "value", json!("v")).await.expect(200);
    let get = ["get", "/a", "--raw"];
    let with_file = [&get[..], &["--token-file", "token"]].concat();
    let shell = Shell::at(&server);
    shell.run(&with_file).expect(1);
    for text in [server.token().to_owned(), format!("{}\n", server.token())] {
        fs::write(shell.file("token"), text).unwrap();
        assert_eq!(shell.run(&with_file).expect(0).output, "v");
    }
    // Each run reads the file again.
    fs::write(shell.file("token"), "hunter2").unwrap();
    let run = shell.run(&with_file).expect(5);
    assert!(!run.errors.contains("hunter2"), "{run:?}");

    shell.run(&get).expect(5);
    for variable in ["KEYWRIGHT_TOKEN", "KEYWRIGHT_CLIENT_TOKEN"] {
        let shell = Shell::at(&server).variable(variable, server.token());
        assert_eq!(shell.run(&get).expect(0).output, "v");
        assert!(session(&shell).is_none());
    }
}

#[test]
fn a_token_file_overrides_everything_else() {
    let stub = Stub::start(|_, _, _| Reply::new(200, &versions()));
    let shell = stub
        .shell()
        .variable("KEYWRIGHT_TOKEN", "of-variable")
        .variable("KEYWRIGHT_CLIENT_ID", "app")
        .variable("KEYWRIGHT_CLIENT_SECRET", "secret");
    fs::write(shell.file("token"), "of-file\n").unwrap();
    shell.run(&["get", "/a"]).expect(0);
    shell.run(&["get", "/a", "--token-file", "token"]).expect(0);
    shell.run(&["--token-file", "token", "get", "/a"]).expect(2);
    let heads: Vec<_> = stub.asked().into_iter().map(|asked| asked.head).collect();
    assert!(heads[0].contains("bearer of-variable"), "{heads:?}");
    assert!(heads[1].contains("bearer of-file"), "{heads:?}");
}

#[test]
fn an_expired_token_from_a_file_is_not_renewed() {
    let stub = Stub::start(|_, _, _| Reply::new(401, super::EXPIRED));
    let shell = stub
        .shell()
        .variable("KEYWRIGHT_CLIENT_ID", "app")
        .variable("KEYWRIGHT_CLIENT_SECRET", "secret");
    fs::write(shell.file("token"), "of-file").unwrap();
    let run = shell.run(&["get", "/a", "--token-file", "token"]).expect(5);
    let advice = "the token in token has expired; replace it";
    assert!(run.errors.contains(advice), "{run:?}");
    assert!(!run.errors.contains("keywright login"), "{run:?}");
    assert_eq!(stub.asked().len(), 1);
}

#[test]
fn a_malformed_token_is_refused_without_being_printed() {
    let shell = Shell::new();
    fs::write(shell.file("token"), "hunter2 hunter2\n").unwrap();
    let run = shell.run(&["find", "--token-file", "token"]).expect(1);
    assert!(
        run.errors.contains("token must contain an access token"),
        "{run:?}"
    );
    assert!(!run.errors.contains("hunter2"), "{run:?}");
    let run = shell
        .variable("KEYWRIGHT_TOKEN", "hunter2\nx")
        .run(&["find"]);
    let run = run.expect(1);
    assert!(
        run.errors.contains("KEYWRIGHT_TOKEN must contain"),
        "{run:?}"
    );
    assert!(!run.errors.contains("hunter2"), "{run:?}");
}

#[test]
fn login_refuses_a_token_file() {
    let shell = Shell::new();
    fs::write(shell.file("token"), "token").unwrap();
    let run = shell.run(&["login", "--username", "a", "--token-file", "token"]);
    let run = run.expect(2);
    assert!(run.errors.contains("--token-file"), "{run:?}");
}
