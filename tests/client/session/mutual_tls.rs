//! Client certificates.

use keywright_harness::{Application, Server, Shell};
use serde_json::json;

use super::session;

const CERTIFICATE: [&str; 4] = ["--cert", "app.pem", "--key", "app-key.pem"];

#[tokio::test]
async fn an_application_logs_in_with_a_certificate_without_a_token() {
    let application = Application::issued();
    let options = application.options().without_tokens();
    let server = Server::start_with(&options).await;
    let shell = Shell::at(&server);
    application.equip(&shell);
    let set = ["set", "/a", "-t", "value", "--value", "v"];
    shell.run(&set).expect(5);
    shell.run(&[&set[..], &CERTIFICATE].concat()).expect(0);
    shell
        .run(&[&["login"][..], &CERTIFICATE].concat())
        .expect(0);
    assert!(session(&shell).unwrap().get("access_token").is_none());
    assert_eq!(shell.run(&["get", "/a", "--raw"]).expect(0).output, "v");
    shell.run(&["logout"]).expect(0);
    shell.run(&["get", "/a"]).expect(5);
}

#[tokio::test]
async fn a_certificate_of_an_untrusted_ca_is_refused() {
    let application = Application::issued();
    let server = Server::start().await;
    server.set("/a", "value", json!("v")).await.expect(200);
    let shell = Shell::at(&server);
    application.equip(&shell);
    shell
        .run(&[&["login"][..], &CERTIFICATE].concat())
        .expect(5);
    assert!(session(&shell).is_none());
    shell.run(&["login", "--cert", "app.pem"]).expect(1);
    let run = shell
        .run(&["get", "/a", "--cert", "ca.pem", "--key", "ca.pem"])
        .expect(1);
    assert!(run.errors.contains("client certificate"), "{run:?}");
}
