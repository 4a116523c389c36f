//! `keywright logout`.

use keywright_harness::{Server, Shell};

use super::session;

#[tokio::test]
async fn it_ends_the_login_at_the_identity_provider_too() {
    let server = Server::start().await;
    let shell = Shell::at(&server);
    let login = ["login", "--username", "developer"];
    shell.run_with(&login, "developer-password").expect(0);
    let kept = session(&shell).unwrap();
    let refresh_token = kept["refresh_token"].as_str().unwrap().to_owned();
    shell.run(&["logout"]).expect(0);
    assert!(session(&shell).is_none());
    shell.run(&["find"]).expect(5);
    let again = ["login", "--refresh-token"];
    shell.run_with(&again, &refresh_token).expect(5);
    let run = shell.run(&["logout"]).expect(0);
    assert!(run.errors.contains("no login"), "{run:?}");
}

#[tokio::test]
async fn where_the_provider_is_away_the_login_is_forgotten_all_the_same() {
    let server = Server::start().await;
    let shell = Shell::at(&server);
    let login = ["login", "--username", "developer"];
    shell.run_with(&login, "developer-password").expect(0);
    drop(server);
    let run = shell.run(&["logout"]).expect(3);
    assert!(run.errors.contains("can't be reached"), "{run:?}");
    assert!(session(&shell).is_none());
}
