//! GET /health

use keywright_harness::Server;
use reqwest::Method;
use serde_json::json;

#[tokio::test]
async fn a_healthy_server_reports_up_without_a_token() {
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
