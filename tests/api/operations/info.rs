//! GET /info

use keywright_harness::{Options, Server};
use reqwest::Method;
use serde_json::json;

#[tokio::test]
async fn identity_provider_and_application_need_no_token() {
    let server = Server::start().await;
    let url = format!("{}/identity", server.base_url());
    let expected = json!({"auth-server": {"url": url}, "app": {"name": "Keywright"}});
    let without_a_token = server.send(server.request(Method::GET, "/info")).await;
    assert_eq!(without_a_token.expect(200).json(), expected);
    let with_garbage = server.request(Method::GET, "/info").bearer_auth("x");
    assert_eq!(server.send(with_garbage).await.expect(200).json(), expected);
    assert_eq!(server.get("/info").await.expect(200).json(), expected);
}

#[tokio::test]
async fn the_name_is_a_setting() {
    let server = Server::start_with(&Options::default().extra("[info]\nname = \"Vault 7\"")).await;
    assert_eq!(
        server.get("/info").await.expect(200).json()["app"]["name"],
        "Vault 7"
    );
}
