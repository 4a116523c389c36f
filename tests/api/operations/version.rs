//! GET /version

use keywright_harness::{Options, Server};
use reqwest::Method;
use serde_json::json;

#[tokio::test]
async fn the_version_is_the_level_of_the_api() {
    let server = Server::start().await;
    let answer = server.get("/version").await.expect(200);
    assert_eq!(answer.json(), json!({"version": "2.15.0"}));
}

#[tokio::test]
async fn it_needs_a_token() {
    let server = Server::start().await;
    let answer = server
        .send(server.request(Method::GET, "/version"))
        .await
        .expect(401);
    assert_eq!(answer.error(), "access_denied");
}

#[tokio::test]
async fn the_level_is_a_setting() {
    let options = Options::default().extra("[info]\napi_version = \"2.9.0\"");
    let server = Server::start_with(&options).await;
    assert_eq!(
        server.get("/version").await.expect(200).json()["version"],
        "2.9.0"
    );
}
