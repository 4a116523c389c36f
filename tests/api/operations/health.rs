//! GET /health

use keywright_harness::Server;
use reqwest::Method;
use serde_json::json;

#[tokio::test]
async fn a_server_that_is_well_says_so_to_anybody() {
    let server = Server::start().await;
    for request in [
        server.request(Method::GET, "/health"),
        server.request(Method::GET, "/health").bearer_auth("x"),
        server.authorized(Method::GET, "/health"),
    ] {
        assert_eq!(
            server.send(request).await.expect(200).json(),
            json!({"status": "UP"})
        );
    }
}
