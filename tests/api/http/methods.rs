//! HEAD, which is supported wherever GET is, and OPTIONS, which no path supports.

use keywright_harness::Server;
use reqwest::Method;

use crate::given;

#[tokio::test]
async fn head_responds_like_get_without_a_body() {
    let server = Server::start().await;
    given::set_value(&server, "/a", "v").await;
    for path in [
        "/info",
        "/health",
        "/version",
        "/management",
        "/api/v1/data?name=/a",
        "/api/v1/data?name=/absent",
        "/api/v1/data",
        "/api/v1/certificates",
        "/unknown",
    ] {
        let get = server.get(path).await;
        let head = server.send(server.authorized(Method::HEAD, path)).await;
        assert_eq!(
            (head.status, head.body.as_str()),
            (get.status, ""),
            "{path}"
        );
        assert_eq!(
            head.header("content-type"),
            get.header("content-type"),
            "{path}"
        );
    }
}

#[tokio::test]
async fn head_needs_a_token_where_get_does() {
    let server = Server::start().await;
    for path in [
        "/version",
        "/management",
        "/api/v1/data?name=/a",
        "/unknown",
    ] {
        let answer = server.send(server.request(Method::HEAD, path)).await;
        assert_eq!(answer.status, 401, "{path}");
    }
}

#[tokio::test]
async fn options_is_a_wrong_method_everywhere() {
    let server = Server::start().await;
    for path in [
        "/info",
        "/version",
        "/management",
        "/api/v1/data",
        "/api/v1/interpolate",
    ] {
        let answer = server.send(server.authorized(Method::OPTIONS, path)).await;
        assert_eq!((answer.status, answer.body.as_str()), (404, ""), "{path}");
    }
}
