//! Tokens, client secrets and passwords of users who log in.

use keywright_harness::{Options, Server};
use reqwest::{Method, header};
use serde_json::json;

use super::{Canaries, traces::assert_left_nowhere};

#[tokio::test]
async fn tokens_are_in_no_log_or_database_file() {
    let server = Server::start().await;
    let mut canaries = Canaries::default();
    for part in server.token().split('.').skip(1) {
        canaries.watch("the token", part);
    }
    server
        .set("/marker/value", "value", json!("v"))
        .await
        .expect(200);
    let forged = canaries.plant("a forged token");
    let cut = server.token().split_once('.').unwrap().1;
    for value in [
        format!("Bearer {forged}"),
        format!("Bearer {}x", server.token()),
        format!("Bearer {cut}"),
        format!("Basic {forged}"),
        format!("bearer  {forged} {forged}"),
        forged.clone(),
    ] {
        let request = server.request(Method::GET, "/api/v1/data?name=/marker/value");
        let answer = server
            .send(request.header(header::AUTHORIZATION, &value))
            .await;
        assert_eq!(answer.status, 401, "{value}");
        canaries.assert_absent("an answer", &answer.body);
        for (name, text) in &answer.headers {
            canaries.assert_absent(name, text);
        }
    }
    assert_left_nowhere(server, &canaries, "/marker/value").await;
}

#[tokio::test]
async fn login_secrets_are_in_no_log_or_database_file() {
    let mut canaries = Canaries::default();
    let client_secret = canaries.plant("a client");
    let password = canaries.plant("a user");
    let wrong = canaries.plant("a wrong secret");
    let identities = format!(
        r#"
[[development_identity_provider.clients]]
id = "tester"
secret = "{client_secret}"

[[development_identity_provider.users]]
id = "8f0b6a3c-5f0e-4a9b-9d0e-6d1c4a1f2b11"
name = "tester"
password = "{password}"
"#
    );
    let server = Server::start_with(&Options::default().extra(&identities)).await;
    server
        .set("/marker/value", "value", json!("v"))
        .await
        .expect(200);
    let client = "client_id=tester";
    let user = "client_id=credhub_cli&client_secret=&grant_type=password&username=tester";
    for (form, status) in [
        (
            format!("grant_type=client_credentials&{client}&client_secret={client_secret}"),
            200,
        ),
        (format!("{user}&password={password}"), 200),
        (
            format!("grant_type=client_credentials&{client}&client_secret={wrong}"),
            401,
        ),
        (format!("{user}&password={wrong}"), 400),
        (
            format!("grant_type=refresh_token&{client}&client_secret={wrong}&refresh_token=x"),
            401,
        ),
        (
            format!("grant_type={wrong}&{client}&client_secret={client_secret}"),
            400,
        ),
    ] {
        let request = server
            .request(Method::POST, "/identity/oauth/token")
            .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
            .body(form.clone());
        let answer = server.send(request).await;
        assert_eq!(answer.status, status, "{form}: {}", answer.body);
        if status == 200 {
            let tokens = answer.json();
            for member in ["access_token", "refresh_token"] {
                if let Some(token) = tokens[member].as_str() {
                    canaries.watch(member, token);
                }
            }
        } else {
            canaries.assert_absent("an answer", &answer.body);
        }
    }
    assert_left_nowhere(server, &canaries, "/marker/value").await;
}
