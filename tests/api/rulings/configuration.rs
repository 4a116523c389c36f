//! Row 16: the address of the identity provider.

use keywright_harness::{Options, Server};

#[tokio::test]
async fn row_16_a_slash_at_the_end_of_the_url_is_dropped() {
    let provider = Server::start().await;
    for slashes in ["", "/", "//"] {
        let url = format!("{}/identity{slashes}", provider.base_url());
        let server = Server::start_with(&Options::default().identity_provider(&url)).await;
        let information = server.get("/info").await.expect(200).json();
        assert_eq!(
            information["auth-server"]["url"],
            format!("{}/identity", provider.base_url())
        );
        let client = provider.as_client("developer").await.at(&server);
        client.get("/version").await.expect(200);
    }
}
