//! Authorization for `/management`: configured actors, and local callers for reading the mode.

use std::{fs, net::IpAddr};

use keywright_harness::{Answer, Options, Server, key_file};
use reqwest::{Certificate, Client, Method, RequestBuilder, header::CONTENT_TYPE};
use serde_json::json;

/// An address of this machine other than the server's.
const ELSEWHERE: [u8; 4] = [127, 0, 0, 2];

const SWITCH_ON: &str = r#"{"read_only_mode":true}"#;

#[tokio::test]
async fn authenticated_local_callers_may_read() {
    let server = Server::start_with(&actors("[]")).await;
    server.get("/management").await.expect(200);
    let on = json!({"read_only_mode": true});
    server.post("/management", on).await.expect(403);
}

#[tokio::test]
async fn an_unlisted_actor_from_another_address_is_refused() {
    let server = Server::start_with(&actors("[]")).await;
    for (method, body) in [
        (Method::GET, ""),
        (Method::HEAD, ""),
        (Method::POST, SWITCH_ON),
        (Method::POST, "not JSON"),
    ] {
        let answer = from_elsewhere(&server, &method, "/management", server.token(), body).await;
        assert_eq!(answer.status, 403, "{method} {body}");
        assert!(method == Method::HEAD || !answer.error().is_empty());
    }
    let mode = server.get("/management").await.expect(200);
    assert_eq!(mode.json(), json!({"read_only_mode": false}));
}

#[tokio::test]
async fn listed_actors_are_allowed_from_another_address() {
    let client = "uaa-client:developer";
    let user = "uaa-user:3f0b6a3c-5f0e-4a9b-9d0e-6d1c4a1f2b10";
    for (named, client_status, user_status) in [
        (json!([client]), 200, 403),
        (json!([user]), 403, 200),
        (json!([user, client]), 200, 200),
        (json!([]), 403, 403),
        (
            json!(["uaa-client:develope", "uaa-client:developer2"]),
            403,
            403,
        ),
        (
            json!(["uaa-client:Developer", "uaa-user:developer"]),
            403,
            403,
        ),
    ] {
        let options = actors(&named.to_string());
        let server = Server::start_with(&options).await;
        let user_token = user_token(&server).await;
        for (token, status) in [(server.token(), client_status), (&user_token, user_status)] {
            for (method, body) in [(Method::GET, ""), (Method::POST, SWITCH_ON)] {
                let answer = from_elsewhere(&server, &method, "/management", token, body).await;
                assert_eq!(answer.status, status, "{method} {named}");
            }
        }
    }
}

#[tokio::test]
async fn forwarded_headers_do_not_change_the_origin() {
    let server = Server::start_with(&actors("[]")).await;
    for (name, value) in [
        ("x-forwarded-for", "127.0.0.1"),
        ("x-real-ip", "127.0.0.1"),
        ("forwarded", "for=127.0.0.1"),
    ] {
        let request = elsewhere(&server, &Method::GET, "/management")
            .bearer_auth(server.token())
            .header(name, value);
        server.send(request).await.expect(403);
    }
}

#[tokio::test]
async fn unauthenticated_callers_get_401_from_every_address() {
    let server = Server::start_with(&actors(r#"["uaa-client:developer"]"#)).await;
    for method in [Method::GET, Method::POST] {
        for request in [
            server.request(method.clone(), "/management"),
            elsewhere(&server, &method, "/management"),
        ] {
            let refused = server.send(request.body(SWITCH_ON)).await.expect(401);
            assert_eq!(refused.error(), "access_denied");
        }
    }
    let forged = elsewhere(&server, &Method::GET, "/management").bearer_auth("no.valid.token");
    let refused = server.send(forged).await.expect(401);
    assert_eq!(refused.error(), "invalid_token");
}

#[tokio::test]
async fn the_rule_holds_however_the_path_is_spelled() {
    let server = Server::start_with(&actors("[]")).await;
    for path in [
        "/management/",
        "//management",
        "/%6danagement",
        "/%6D%61%6E%61%67%65%6D%65%6E%74//",
    ] {
        let answer = from_elsewhere(&server, &Method::POST, path, server.token(), SWITCH_ON).await;
        assert_eq!(answer.status, 403, "{path}");
        server.get(path).await.expect(200);
        let request = server.request(Method::GET, path);
        server.send(request).await.expect(401);
    }
}

#[tokio::test]
async fn a_wrong_method_is_404_for_refused_callers_too() {
    let server = Server::start().await;
    let token = server.token();
    for method in [Method::PUT, Method::DELETE, Method::PATCH] {
        let answer = from_elsewhere(&server, &method, "/management", token, SWITCH_ON).await;
        assert_eq!((answer.status, answer.body.as_str()), (404, ""), "{method}");
    }
}

#[tokio::test]
async fn an_impossible_configured_actor_is_refused_at_start() {
    for actor in [
        "developer",
        "uaa-client:",
        "uaa-client: ",
        "UAA-CLIENT:a",
        "mtls:app",
        "",
    ] {
        let said = Server::refusal(&actors(&json!([actor]).to_string()));
        assert!(said.contains("management.actors"), "{said}");
    }
}

/// A server with these actors, an array of JSON.
fn actors(named: &str) -> Options {
    Options::default().environment("KEYWRIGHT_MANAGEMENT__ACTORS", named)
}

async fn from_elsewhere(
    server: &Server,
    method: &Method,
    path: &str,
    token: &str,
    body: &'static str,
) -> Answer {
    let request = elsewhere(server, method, path)
        .bearer_auth(token)
        .header(CONTENT_TYPE, "application/json")
        .body(body);
    server.send(request).await
}

/// A request without a token, over a connection from another address.
fn elsewhere(server: &Server, method: &Method, path: &str) -> RequestBuilder {
    let authority = fs::read(key_file("ca.pem")).unwrap();
    let client = Client::builder()
        .tls_certs_only([Certificate::from_pem(&authority).unwrap()])
        .no_proxy()
        .local_address(IpAddr::from(ELSEWHERE))
        .build()
        .unwrap();
    client.request(method.clone(), format!("{}{path}", server.base_url()))
}

/// A token of the development user.
async fn user_token(server: &Server) -> String {
    let form = "grant_type=password&client_id=credhub_cli&client_secret=&username=developer&password=developer-password";
    let request = server
        .request(Method::POST, "/identity/oauth/token")
        .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
        .body(form);
    let granted = server.send(request).await.expect(200).json();
    let token = granted.pointer("/access_token").unwrap();
    token.as_str().unwrap().to_owned()
}
