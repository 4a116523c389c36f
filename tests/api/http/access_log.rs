//! The access log.

use keywright_harness::{Options, Server, Text, mint::present};
use reqwest::{Method, header};
use serde_json::{Value, json};

use crate::given;

const CANARY: &str = "canary-8d1f";

#[tokio::test]
async fn the_access_log_names_the_route_the_actor_and_the_request() {
    let server = Server::start().await;
    let response = server.get(&format!("/api/v1/data?name={CANARY}")).await;
    let line = server.access_log_line(&response.expect(404));
    line.assert_contains("keywright_api::access");
    for part in [
        r#""http.method":"GET""#,
        r#""http.route":"/api/v1/data""#,
        r#""http.status":404"#,
        r#""duration_ms":"#,
        r#""actor":"uaa-client:developer""#,
    ] {
        line.assert_contains(part);
    }
}

#[tokio::test]
async fn log_lines_about_a_request_have_its_id() {
    let hostile = Options::default().hostile("", "generate = \"trap\"");
    let server = Server::start_with(&hostile).await;
    let body = json!({"name": "/a", "type": "hostile"});
    let response = server.post("/api/v1/data", body).await.expect(500);
    let log = server.log();
    // The first line is from the thread that called the plugin.
    for message in ["plugin call failed", "request failed"] {
        let line = log.lines().find(|line| line.contains(message)).unwrap();
        let line: Value = serde_json::from_str(line).unwrap();
        assert_eq!(line["request_id"], response.header("x-request-id").unwrap());
    }
}

const REQUESTS_WITH_CANARIES: &str = r#"
    400 PUT /api/v1/data {"name": "canary-8d1f a", "type": "value", "value": "v"}
    422 PUT /api/v1/data {"name": "canary-8d1f", "type": "canary-8d1f", "value": "canary-8d1f"}
    200 POST /api/v1/data {"name": "canary-8d1f", "type": "user", "metadata": {"canary-8d1f": 1}}
    200 POST /api/v1/interpolate {"canary-8d1f": "canary-8d1f"}
    404 GET /canary-8d1f?canary-8d1f=canary-8d1f {}
    404 GET /api/v1/data/canary-8d1f {}
"#;

#[tokio::test]
async fn request_data_is_not_logged() {
    let server = Server::start().await;
    for (status, method, path, body) in given::requests(REQUESTS_WITH_CANARIES) {
        let request = server.authorized(method, &path).header("x-canary", CANARY);
        server
            .send(request.body(body.to_string()))
            .await
            .expect(status);
    }
    let form = format!("grant_type=password&client_id=credhub_cli&username={CANARY}&password=p");
    let login = server
        .request(Method::POST, "/identity/oauth/token")
        .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded");
    server.send(login.body(form)).await.expect(400);
    let token = "canary-8d1f.canary-8d1f.canary-8d1f";
    present(&server, token).await.expect(401);
    let log = server.whole_log().await;
    log.assert_contains("oauth/token");
    log.assert_lacks(CANARY);
}
