//! Requests without events.

use keywright_harness::Server;
use reqwest::{Method, header};

use super::events;

#[tokio::test]
async fn open_and_unauthenticated_requests_are_not_audited() {
    let server = Server::start().await;
    for path in [
        "/info",
        "/health",
        "/version",
        "/info/",
        "/version/",
        "/api/v1/key-usage",
        "/api/v1/types",
    ] {
        server.get(path).await.expect(200);
    }
    for path in [
        "/api/v1/data?name=/a",
        "/api/v1/certificates",
        "/api/v2/permissions/x",
        "/management",
        "/nowhere",
    ] {
        let anonymous = server.send(server.request(Method::GET, path)).await;
        assert_eq!(anonymous.status, 401, "{path}");
        let forged = server
            .request(Method::GET, path)
            .header(header::AUTHORIZATION, format!("Bearer {}x", server.token()));
        assert_eq!(server.send(forged).await.status, 401, "{path}");
    }
    let form = "grant_type=password&client_id=credhub_cli&client_secret=\
                &username=developer&password=developer-password";
    let request = server
        .request(Method::POST, "/identity/oauth/token")
        .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
        .body(form);
    server.send(request).await.expect(200);
    assert!(events(&server).is_empty(), "{:?}", events(&server));

    server.get("/api/v1/data?name=/a").await.expect(404);
    assert_eq!(events(&server).len(), 1, "the search proves nothing");
}
