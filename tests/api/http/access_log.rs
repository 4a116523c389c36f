//! The access log.

use keywright_harness::{Options, Server, Text, mint::present};
use reqwest::{Method, header};
use serde_json::{Value, json};

const CANARY: &str = "canary-8d1f";

#[tokio::test]
async fn the_access_log_names_the_route_the_actor_and_the_request() {
    let server = Server::start().await;
    let response = server.get(&format!("/api/v1/data?name={CANARY}")).await;
    let id = response
        .expect(404)
        .header("x-request-id")
        .unwrap()
        .to_owned();
    let log = server.whole_log().await;
    let line = log
        .lines()
        .find(|line| line.contains("keywright_api::access") && line.contains(&id))
        .unwrap();
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

#[tokio::test]
async fn request_data_is_not_logged() {
    let server = Server::start().await;
    let name = format!("{CANARY} a");
    for (method, path, body) in [
        (
            Method::PUT,
            "/api/v1/data",
            json!({"name": name, "type": "value", "value": "v"}),
        ),
        (
            Method::PUT,
            "/api/v1/data",
            json!({"name": CANARY, "type": CANARY, "value": CANARY}),
        ),
        (
            Method::POST,
            "/api/v1/data",
            json!({"name": CANARY, "type": "user", "metadata": {CANARY: 1}}),
        ),
        (Method::POST, "/api/v1/interpolate", json!({CANARY: CANARY})),
        (
            Method::GET,
            "/canary-8d1f?canary-8d1f=canary-8d1f",
            json!({}),
        ),
        (Method::GET, "/api/v1/data/canary-8d1f", json!({})),
    ] {
        let request = server
            .authorized(method, path)
            .header("x-canary", CANARY)
            .body(body.to_string());
        server.send(request).await;
    }
    let form = format!("grant_type=password&client_id=credhub_cli&username={CANARY}&password=p");
    let login = server
        .request(Method::POST, "/identity/oauth/token")
        .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded");
    server.send(login.body(form)).await.expect(400);
    present(&server, "canary-8d1f.canary-8d1f.canary-8d1f")
        .await
        .expect(401);
    let log = server.whole_log().await;
    log.assert_contains("oauth/token");
    log.assert_lacks(CANARY);
}
