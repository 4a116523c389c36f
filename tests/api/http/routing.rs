//! Paths, methods, query parameters, and the order in which a request is checked.

use keywright_harness::Server;
use reqwest::Method;
use serde_json::json;

use crate::given;

// Paths and methods, and the order in which a request is checked.

#[tokio::test]
async fn a_wrong_method_is_404_and_needs_a_token_like_its_path() {
    let server = Server::reused().await;
    for (methods, path) in WRONG_METHODS {
        let is_open = ["/info", "/health", "/docs", "/openapi.json"].contains(&path);
        for method in methods.split(' ') {
            let method: Method = method.parse().unwrap();
            let response = server.send(server.authorized(method.clone(), path)).await;
            assert_eq!(response.expect(404).body, "", "{method} {path}");
            let response = server.send(server.request(method, path)).await;
            response.expect(if is_open { 404 } else { 401 });
        }
    }
}

#[tokio::test]
async fn changes_that_pages_of_other_sites_send_are_refused() {
    let server = Server::reused().await;
    server.issued("/root", json!({"is_ca": true})).await;
    let path = server.certificate_path("/root").await + "/regenerate";
    // A form needs neither a body nor a content type that other sites can't send.
    let send = async |method: &Method, has_token: bool, sites: &[&str]| {
        let mut request = server.request(method.clone(), &path);
        if has_token {
            request = request.bearer_auth(server.token());
        }
        for site in sites {
            request = request.header("sec-fetch-site", *site);
        }
        server.send(request).await
    };
    let changes = ["POST", "PUT", "PATCH", "DELETE", "OPTIONS"];
    let changes = changes.map(|method| method.parse::<Method>().unwrap());
    let two_sites = &["same-origin", "cross-site"][..];
    for method in &changes {
        for sites in [
            &["cross-site"],
            &["same-site"],
            &["Same-Origin"],
            &[""],
            two_sites,
        ] {
            for has_token in [true, false] {
                let refused = send(method, has_token, sites).await.expect(403).error();
                let expected = "a page of another site sent the request; from other sites, only GET and HEAD are allowed";
                assert_eq!(refused, expected, "{method} {sites:?}");
            }
        }
    }
    assert_eq!(server.versions("/root").await.len(), 1);
    for method in &changes {
        for sites in [&["same-origin"][..], &["none"], &[]] {
            let status = if *method == Method::POST { 200 } else { 404 };
            send(method, true, sites).await.expect(status);
        }
    }
    assert_eq!(server.versions("/root").await.len(), 4);
    for method in [Method::GET, Method::HEAD] {
        let request = server.authorized(method, "/version");
        let request = request.header("sec-fetch-site", "cross-site");
        server.send(request).await.expect(200);
    }
}

#[tokio::test]
async fn an_invalid_token_is_reported_before_all_other_errors() {
    let server = Server::reused().await;
    for (method, path, body) in [
        (Method::PUT, "/api/v1/data", "not json"),
        (Method::POST, "/api/v1/data", r#"{"unknown": 1}"#),
        (Method::PATCH, "/api/v1/data", ""),
        (Method::GET, "/api/v1/data?versions=x", ""),
        (Method::DELETE, "/api/v1/data", ""),
        (Method::GET, "/no/such/path", ""),
    ] {
        let request = server
            .request(method.clone(), path)
            .bearer_auth("no.valid.token")
            .body(body);
        let error = server.send(request).await.expect(401).error();
        assert_eq!(error, "invalid_token", "{path}");
    }
}

#[tokio::test]
async fn a_bad_request_is_reported_before_absent_and_stored_data() {
    let server = Server::reused().await;
    server.set_value("/a", "v").await;
    let table = r#"
        422 POST /api/v1/regenerate {"name": "/absent", "unknown": 1}
        400 GET /api/v1/data?name=/absent&versions=-1
        400 GET /api/v1/data?name=/absent&current=maybe
        # Of another type, and too large.
        422 PUT /api/v1/data {"name": "/a", "type": "password", "value": "v", "unknown": 1}
        422 PUT /api/v1/data {"name": "/a", "type": "value", "value": "LONG", "unknown": 1}
    "#;
    let table = table.replace("LONG", &"v".repeat(70_000));
    given::assert_refused(&server, &table).await;
    assert_eq!(server.versions("/a").await.len(), 1);
}

const WRONG_METHODS: [(&str, &str); 16] = [
    ("POST", "/api/v1/certificates"),
    ("POST PUT DELETE PATCH", "/api/v1/types"),
    ("POST PUT DELETE PATCH", "/api/v1/key-usage"),
    ("POST PUT DELETE PATCH", "/docs"),
    ("POST PUT DELETE PATCH", "/openapi.json"),
    (
        "PUT PATCH DELETE",
        "/api/v1/certificates/8ffd2a43-0ba6-44cf-8b55-e2e9ba2cb9e9/versions",
    ),
    (
        "GET POST",
        "/api/v1/certificates/8ffd2a43-0ba6-44cf-8b55-e2e9ba2cb9e9/versions/8ffd2a43-0ba6-44cf-8b55-e2e9ba2cb9e9",
    ),
    ("OPTIONS POST", "/info"),
    ("OPTIONS POST DELETE", "/version"),
    ("OPTIONS PUT DELETE", "/management"),
    ("OPTIONS GET PUT DELETE HEAD", "/api/v1/interpolate"),
    ("GET PUT", "/api/v1/bulk-regenerate"),
    ("PATCH OPTIONS", "/api/v1/data"),
    ("GET PUT DELETE", "/api/v1/regenerate"),
    (
        "PUT POST DELETE",
        "/api/v1/data/8ffd2a43-0ba6-44cf-8b55-e2e9ba2cb9e9",
    ),
    ("PUT DELETE", "/health"),
];

#[tokio::test]
async fn head_responds_like_get_without_a_body() {
    let server = Server::reused().await;
    server.set_value("/a", "v").await;
    let others = "/info /health /docs /openapi.json /api/v1/data?name=/absent /api/v1/data /api/v1/certificates";
    let closed = "/version /management /api/v1/data?name=/a /unknown";
    for path in others.split(' ').chain(closed.split(' ')) {
        let get = server.get(path).await;
        let head = server.send(server.authorized(Method::HEAD, path)).await;
        let head = head.expect(get.status);
        assert_eq!(head.body, "", "{path}");
        let actual = head.header("content-type");
        assert_eq!(actual, get.header("content-type"), "{path}");
    }
    for path in closed.split(' ') {
        let response = server.send(server.request(Method::HEAD, path)).await;
        response.expect(401);
    }
}

// Query parameters.

#[tokio::test]
async fn a_missing_or_empty_name_is_400_and_the_error_names_it() {
    let server = Server::reused().await;
    // The last one is the listing of all paths, which the API no longer has.
    for query in " ? ?name= ?name ?current=true ?versions=1 ?Name=/a ?paths=true".split(' ') {
        let path = format!("/api/v1/data{query}");
        for response in [server.get(&path).await, server.delete(&path).await] {
            response.expect_error(400, "name");
        }
    }
}

#[tokio::test]
async fn a_duplicate_parameter_is_400_and_named() {
    let server = Server::reused().await;
    server.set_value("/a", "v").await;
    for (query, parameter) in [
        ("name=/a&name=/a", "name"),
        ("name=/a&n%61me=/b", "name"),
        ("name=/a&versions=1&versions=2", "versions"),
        ("name=/a&current=true&current=true", "current"),
        ("path=/a&path=/b", "path"),
        ("name-like=a&name-like=b", "name-like"),
    ] {
        let response = server.get(&format!("/api/v1/data?{query}")).await;
        response.expect_error(400, parameter);
    }
    let days = "/api/v1/data?path=&expires-within-days=1&expires-within-days=2";
    let response = server.get(days).await;
    response.expect_error(400, "expires-within-days");
    let response = server.delete("/api/v1/data?name=/a&name=/b").await;
    response.expect(400);
    assert_eq!(server.versions("/a").await.len(), 1);
}

#[tokio::test]
async fn an_unparsable_scalar_is_400_and_names_the_parameter() {
    let server = Server::reused().await;
    server.set_value("/a", "v").await;
    for (query, parameter) in [
        ("name=/a&versions=abc", "versions"),
        ("name=/a&versions=1.5", "versions"),
        ("name=/a&versions=%201", "versions"),
        ("name=/a&versions=99999999999999999999", "versions"),
        ("name=/a&versions=-1", "versions"),
        ("name=/a&current=maybe", "current"),
        ("name=/a&current=2", "current"),
        ("path=/&expires-within-days=x", "expires-within-days"),
        ("name-like=a&expires-within-days=1.5", "expires-within-days"),
        // Parameters without an effect are checked, too.
        ("path=/&versions=abc", "versions"),
        ("path=/&versions=-1", "versions"),
        ("name-like=a&name=/a&current=maybe", "current"),
        ("name=/a&expires-within-days=x", "expires-within-days"),
        ("name=/a&effective=maybe", "effective"),
    ] {
        let response = server.get(&format!("/api/v1/data?{query}")).await;
        response.expect_error(400, parameter);
    }
}

#[tokio::test]
async fn current_and_versions_exclude_each_other() {
    let server = Server::reused().await;
    for text in ["one", "two", "three"] {
        server.set_value("/a", text).await;
    }
    let both = server.get("/api/v1/data?name=/a&current=true&versions=1");
    both.await.expect(400).error();
    let response = server.get("/api/v1/data?name=/a&current=false&versions=2");
    assert_eq!(given::versions_in(&response.await.expect(200)).len(), 2);
}

#[tokio::test]
async fn path_and_name_like_override_name_and_exclude_each_other() {
    let server = Server::reused().await;
    server.set_value("/p/a", "v").await;
    server.set_value("/q/b", "v").await;
    assert_eq!(server.found_names("name=/q/b&path=/p").await, ["/p/a"]);
    let actual = server.found_names("name=/q/b&name-like=p/").await;
    assert_eq!(actual, ["/p/a"]);
    let response = server
        .get("/api/v1/data?path=/p&name-like=a")
        .await
        .expect(400);
    assert!(!response.error().is_empty());
}

#[tokio::test]
async fn query_values_are_percent_decoded() {
    let server = Server::reused().await;
    server.set_value("/a/b:(c)[1]", "v").await;
    for query in [
        "name=/a/b:(c)[1]",
        "name=%2Fa%2Fb%3A%28c%29%5B1%5D",
        "name=%2fa/b:(c)%5b1%5d",
        "current=true&name=a%2Fb:(c)[1]",
    ] {
        let response = server.get(&format!("/api/v1/data?{query}")).await;
        assert_eq!(response.status, 200, "{query}: {response:?}");
        assert_eq!(given::versions_in(&response).len(), 1, "{query}");
    }
    server.get("/api/v1/data?name=%2A").await.expect(404);
    let response = server
        .delete("/api/v1/data?name=%2Fa%2Fb%3A%28c%29%5B1%5D")
        .await;
    response.expect(204);
    let actual = server.get("/api/v1/data?path=").await.json();
    assert_eq!(actual, json!({"credentials": []}));
}
