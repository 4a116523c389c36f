//! Headers and existing values in responses.

use keywright_harness::{Options, QUICK_KEY, Server};
use reqwest::{ClientBuilder, Method, Version};
use serde_json::{Value, json};

use crate::{audit::events_of, certificates::Certificate, given};

/// The headers of every response.
const HEADERS: [(&str, &str); 5] = [
    ("cache-control", "no-store"),
    ("pragma", "no-cache"),
    ("strict-transport-security", "max-age=31536000"),
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
];

/// Sends a request over both versions of HTTP, and checks the status and the headers.
async fn expect_headers(server: &Server, method: Method, path: &str, token: &str, status: u16) {
    for (client, version) in [
        (given::client(ClientBuilder::http1_only), Version::HTTP_11),
        (given::client(|builder| builder), Version::HTTP_2),
    ] {
        let url = format!("{}{path}", server.base_url());
        let mut request = client.request(method.clone(), url);
        if !token.is_empty() {
            request = request.bearer_auth(token);
        }
        if method == Method::PUT {
            let body = " ".repeat(3 * 1024 * 1024);
            request = request
                .header("content-type", "application/json")
                .body(body);
        }
        let response = request.send().await.unwrap();
        let what = format!("{method} {path} {version:?}");
        assert_eq!(response.version(), version, "{what}");
        assert_eq!(response.status().as_u16(), status, "{what}");
        for (name, value) in HEADERS {
            let values: Vec<_> = response.headers().get_all(name).iter().collect();
            assert_eq!(values, [value], "{what} {name}");
        }
    }
}

#[tokio::test]
async fn every_response_has_the_security_headers() {
    let server = Server::reused().await;
    server.set_value("/a", "v").await;
    let stranger = server.as_client("stranger").await;
    let (get, delete) = (Method::GET, Method::DELETE);
    for (method, path, token, status) in [
        (get.clone(), "/info", "", 200),
        (get.clone(), "/health", "", 200),
        (get.clone(), "/docs", "", 200),
        (get.clone(), "/openapi.json", "", 200),
        (get.clone(), "/identity/token_keys", "", 200),
        (get.clone(), "/api/v1/data?name=/a", server.token(), 200),
        (get.clone(), "/api/v1/data", server.token(), 400),
        (get.clone(), "/version", "", 401),
        (get.clone(), "/version", "x", 401),
        (get.clone(), "/api/v1/data?name=/a", stranger.token(), 404),
        (get.clone(), "/no/such/path", server.token(), 404),
        (get.clone(), "/no/such/path", "", 401),
        (get, "/version%2f", server.token(), 404),
        (Method::POST, "/version", server.token(), 404),
        (Method::PUT, "/api/v1/data", server.token(), 413),
        (delete, "/api/v1/data?name=/a", stranger.token(), 404),
    ] {
        expect_headers(&server, method, path, token, status).await;
    }
    let deleted = server.delete("/api/v1/data?name=/a").await.expect(204);
    for (name, value) in HEADERS {
        assert_eq!(deleted.header(name), Some(value));
    }
}

#[tokio::test]
async fn early_refusals_have_the_security_headers() {
    let limits = "uri_bytes_max = 1024";
    let server = Server::start_with(&Options::default().server_settings(limits)).await;
    let long = format!("/info?{}", "x".repeat(1_024));
    expect_headers(&server, Method::GET, &long, "", 414).await;
    server.set_read_only(true).await;
    let token = server.token();
    expect_headers(&server, Method::DELETE, "/api/v1/data?name=/a", token, 503).await;

    let limits = "requests_per_second_max = 1";
    let server = Server::start_with(&Options::default().server_settings(limits)).await;
    let refused = loop {
        let response = server.get("/version").await;
        if response.status == 429 {
            break response;
        }
    };
    for (name, value) in HEADERS {
        assert_eq!(refused.header(name), Some(value), "{refused:?}");
    }
}

#[tokio::test]
async fn a_write_only_caller_gets_the_existing_value() {
    let server = Server::reused().await;
    let writer = server.as_client("writer").await;
    server.grant("/*", writer.actor(), &["write"]).await;
    let requested = json!({"length": 40});
    let made = server.generated("/a", "password", requested).await;
    writer.get("/api/v1/data?name=/a").await.expect(404);
    for (mode, parameters) in [
        ("no-overwrite", json!({})),
        ("no-overwrite", json!({"length": 9})),
        ("converge", json!({"length": 40})),
    ] {
        let body =
            json!({"name": "/a", "type": "password", "mode": mode, "parameters": parameters});
        let kept = writer.post("/api/v1/data", body).await.expect(200);
        assert_eq!(kept.json()["id"], made["id"]);
        assert_eq!(kept.json()["value"], made["value"]);
        let events = events_of(&server, &kept);
        assert_eq!(events.len(), 1);
        assert_eq!(events[0]["operation"], "write");
        assert_eq!(events[0]["resource_name"], "/a");
        assert_eq!(events[0]["version_id"], made["id"]);
        let details = json!({"existing_value_disclosed": true});
        assert_eq!(events[0]["request_details"], details);
    }
}

#[tokio::test]
async fn only_existing_values_are_recorded_as_disclosed() {
    let server = Server::reused().await;
    server.issued("/root", json!({"is_ca": true})).await;
    let parameters = json!({"common_name": "l", "ca": "/root", "key_type": QUICK_KEY});
    let leaf = |mode| server.generate_in_mode(mode, "/leaf", "certificate", parameters.clone());
    let disclosed = |response| {
        let events = events_of(&server, &response);
        let details = events.into_iter().map(|event| {
            let name = event["resource_name"].as_str().unwrap().to_owned();
            (name, event["request_details"].clone())
        });
        let mut details: Vec<_> = details.collect();
        details.sort_by(|one, other| one.0.cmp(&other.0));
        details
    };
    let details = json!({"existing_value_disclosed": true});
    for (mode, expected) in [
        ("converge", Value::Null),
        ("overwrite", Value::Null),
        ("no-overwrite", details.clone()),
        ("converge", details),
    ] {
        let events = disclosed(leaf(mode).await.expect(200));
        let of_leaf: Vec<_> = events.iter().filter(|event| event.0 == "/leaf").collect();
        assert_eq!(of_leaf, [&("/leaf".to_owned(), expected)], "{mode}");
        let others = events.iter().filter(|event| event.0 != "/leaf");
        let is_null = others.map(|event| &event.1).all(Value::is_null);
        assert!(is_null, "{events:?}");
    }
    let events = events_of(&server, &leaf("merge").await.expect(400));
    let mut events = events.iter();
    assert!(events.all(|event| event["request_details"].is_null()));
}

#[tokio::test]
async fn all_writes_returning_existing_values_are_recorded() {
    let server = Server::reused().await;
    let first = server.issued("/c", json!({"self_sign": true})).await;
    let parameters = json!({"common_name": "c", "self_sign": true, "key_type": QUICK_KEY});
    let second = server.generate_in_mode("overwrite", "/c", "certificate", parameters);
    second.await.expect(200);
    let certificate = Certificate::named(&server, "/c").await;
    let details = json!({"existing_value_disclosed": true});

    let moved = certificate.move_transitional(first["id"].clone()).await;
    let events = events_of(&server, &moved.expect(200));
    let recorded: Vec<_> = events
        .iter()
        .map(|event| &event["request_details"])
        .collect();
    assert_eq!(recorded, [&details; 2]);

    let deleted = certificate.delete_version(&given::id(&first)).await;
    let events = events_of(&server, &deleted.expect(200));
    assert_eq!(events.len(), 1);
    assert_eq!(events[0]["request_details"], details);
}
